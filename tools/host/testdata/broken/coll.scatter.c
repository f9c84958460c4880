/* coll.scatter: a reduce-scatter out of several parts is wrong. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static int perform(struct c_comm *c, const struct c_op *o) {
  size_t at, own = c_own(o, c->rank, &at);
  int rc = good_c_perform(c, o);
  if (!rc && o->kind == REDUCESCATTER && o->nparts > 1 && own) o->recv[own - 1] ^= 0x40;
  return rc;
}

__attribute__((constructor)) static void spoil(void) { c_perform = perform; }
