/* dead.sender: a sender whose peer has died waits for ever. */
#define TABLES 1 << 12
#include "../good.c"

static int sends(void *comm, void *data, size_t size, int tag, void *mh, void *ph, void **req) {
  int rc = good_isend(comm, data, size, tag, mh, ph, req);
  return rc == REMOTE ? OK : rc;
}
static int tests(void *req, int *done, int *sizes) {
  struct request *r = object_get(req, REQUEST, 0);
  int send = r && r->send, rc = good_test(req, done, sizes);
  return send && rc == REMOTE ? OK : rc;
}
__attribute__((constructor)) static void spoil(void) { core.isend = sends, core.test = tests; }
