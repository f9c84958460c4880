/* coll.wait: rank 0 says done as soon as it has started. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static int done(void *c, const struct c_op *o, void **req) {
  int rc = good_c_start(c, o, req);
  struct c_comm *comm = object_get(c, COLL, 0);
  struct c_request *r = object_get(*req, COLL_REQUEST, 0);
  if (r && comm->rank == 0 && o->bytes == 400000) r->done = 1;
  return rc;
}

__attribute__((constructor)) static void spoil(void) { coll.start = done; }
