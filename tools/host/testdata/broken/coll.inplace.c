/* coll.inplace: a result over its input is wrong. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static int perform(struct c_comm *c, const struct c_op *o) {
  int rc = good_c_perform(c, o);
  if (!rc && o->kind == ALLREDUCE && o->send == o->recv) o->recv[o->bytes - 1] ^= 0x40;
  return rc;
}

__attribute__((constructor)) static void spoil(void) { c_perform = perform; }
