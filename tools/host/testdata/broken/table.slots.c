/* table.slots: iflush is NULL because there is no GPU memory to flush. */
#define TABLES 1 << 12
#include "../good.c"


__attribute__((constructor)) static void spoil(void) { ncclNetPlugin_v12.iflush = NULL; }
