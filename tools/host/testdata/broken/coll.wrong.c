/* coll.wrong: a count that cannot be is taken for later. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static R later(void *c, void *s, void *r, size_t n, ncclDataType_t t, ncclRedOp_t op, void *sm, void *rm, void **q) {
  return n > 1ul << 40 ? (*q = NULL, ncclSuccess) : c_allreduce9(c, s, r, n, t, op, sm, rm, q);
}

__attribute__((constructor)) static void spoil(void) { ncclCollNetPlugin_v12.iallreduce = later; }
