/* lib.tables: no table under a name that NCCL looks up. */
#define TABLES 0
#include "../good.c"

int ncclNet_v12;
