/* coll.leave: each comm leaves a descriptor. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static int leak(void **h, int n, int rank, void *l, void **c) { return open("/dev/null", O_CLOEXEC), good_c_connect(h, n, rank, l, c); }

__attribute__((constructor)) static void spoil(void) { coll.connect = leak; }
