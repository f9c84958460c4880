/* oversize.code: a send larger than its receive is taken for a fault of the system. */
#define TABLES 1 << 12
#include "../good.c"

static int sends(void *comm, void *data, size_t size, int tag, void *mh, void *ph, void **req) {
  int rc = good_isend(comm, data, size, tag, mh, ph, req);
  return rc == USAGE ? SYSTEM : rc;
}
static int tests(void *req, int *done, int *sizes) {
  int rc = good_test(req, done, sizes);
  return rc == USAGE ? SYSTEM : rc;
}
__attribute__((constructor)) static void spoil(void) { core.isend = sends, core.test = tests; }
