/* mr.large: regMr keeps the size in an int. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm, void *data, size_t size, int type, void **mh) { return good_regmr(comm, data, (size_t)(int)size, type, mh); }
__attribute__((constructor)) static void spoil(void) { core.regmr = bad; }
