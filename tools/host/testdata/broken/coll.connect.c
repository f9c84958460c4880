/* coll.connect: a third rank is not taken. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static int two(void **h, int n, int rank, void *l, void **c) { return n > 2 ? (*c = NULL, INTERNAL) : good_c_connect(h, n, rank, l, c); }

__attribute__((constructor)) static void spoil(void) { coll.connect = two; }
