/* coll.many: what comes behind others is summed, whatever was asked for. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static int bad_start(void *c, const struct c_op *o, void **req) {
  struct c_comm *comm = object_get(c, COLL, 0);
  struct c_op as = *o;
  if (comm && o->type == 0 && o->kind == ALLREDUCE && comm->untested) as.op = 0;
  return good_c_start(c, &as, req);
}

__attribute__((constructor)) static void spoil(void) { coll.start = bad_start; }
