/* group.requests: 16 sends at a time. */
#define TABLES 1 << 12
#include "../good.c"

static int out;
static int sends(void *comm, void *data, size_t size, int tag, void *mh, void *ph, void **req) {
  if (out == 16) return *req = NULL, OK;
  int rc = good_isend(comm, data, size, tag, mh, ph, req);
  return out += *req != NULL, rc;
}
static int tests(void *req, int *done, int *sizes) {
  struct request *r = object_get(req, REQUEST, 0);
  int send = r && r->send, rc = good_test(req, done, sizes);
  return out -= send && *done, rc;
}
__attribute__((constructor)) static void spoil(void) { core.isend = sends, core.test = tests; }
