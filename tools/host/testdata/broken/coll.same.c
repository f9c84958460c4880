/* coll.same: the last bit of rank 1's result is another now and then. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static int perform(struct c_comm *c, const struct c_op *o) {
  int rc = good_c_perform(c, o);
  if (!rc && c->rank == 1 && o->type == 8 && o->bytes == 3001 * 8) o->recv[0] ^= 1;
  return rc;
}

__attribute__((constructor)) static void spoil(void) { c_perform = perform; }
