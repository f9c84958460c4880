/* dead.posted: isend on a connection that has ended returns the error itself. */
#define TABLES 1 << 12
#include "../good.c"

static int sends(void *comm, void *data, size_t size, int tag, void *mh, void *ph, void **req) {
  struct comm *c = object_get(comm, SEND, 0);
  int rc = good_isend(comm, data, size, tag, mh, ph, req);
  return rc || !c || c->rc != REMOTE ? rc : (*req = NULL, c->rc);
}
__attribute__((constructor)) static void spoil(void) { core.isend = sends; }
