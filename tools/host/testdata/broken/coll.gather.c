/* coll.gather: an all-gather spoils its second part. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static int perform(struct c_comm *c, const struct c_op *o) {
  int rc = good_c_perform(c, o);
  if (!rc && o->kind == ALLGATHER && o->nparts > 1 && o->part[1].size) o->part[1].addr[0] ^= 1;
  return rc;
}

__attribute__((constructor)) static void spoil(void) { c_perform = perform; }
