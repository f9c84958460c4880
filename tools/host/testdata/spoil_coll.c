/* The good collNet, but SPOILS says what happens to a result of rank 1: 1: a byte of it is another, 2: the last bit of its first
 * element is, which is near enough. */
#include "coll.c"

static int spoil_perform(struct c_comm *c, const struct c_op *o) {
  int rc = good_c_perform(c, o);
  if (!rc && c->rank == 1 && o->kind == ALLREDUCE && o->bytes > 64) o->recv[SPOILS == 1 ? o->bytes - 1 : 0] ^= SPOILS == 1 ? 0x40 : 1;
  return rc;
}

__attribute__((constructor)) static void spoil(void) { c_perform = spoil_perform; }
