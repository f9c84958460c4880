/* send.stale: a send that cannot begin yet leaves *request alone. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm, void *data, size_t size, int tag, void *mh, void *ph, void **req) {
  void *mine = NULL;
  int rc = good_isend(comm, data, size, tag, mh, ph, &mine);
  if (mine || rc) *req = mine;
  return rc;
}
__attribute__((constructor)) static void spoil(void) { core.isend = bad; }
