/* coll.close.done: rank 0 is done a while before the others have their results. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static int perform(struct c_comm *c, const struct c_op *o) {
  if (c->rank || o->bytes != 2000000) return good_c_perform(c, o);
  char *all = calloc(1, o->bytes + 1);
  int rc = c_collect(c, o, all);
  struct c_request *r = object_get(c->req[c->head % C_DEPTH], COLL_REQUEST, 0);
  if (!rc) c_output(c, o, all), r->done = 1, usleep(200000), rc = c_spread(c, o, all);
  free(all);
  return rc;
}

__attribute__((constructor)) static void spoil(void) { c_perform = perform; }
