/* flush.group: the request of a flush of several buffers is one that test does not know. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm, int n, void **data, int *sizes, void **mhs, void **req) {
  int rc = good_iflush(comm, n, data, sizes, mhs, req);
  if (n > 1) *req = object_new(FLUSH, comm);
  return rc;
}
__attribute__((constructor)) static void spoil(void) { core.iflush = bad; }
