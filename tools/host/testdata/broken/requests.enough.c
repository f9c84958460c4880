/* requests.enough: 12 receives at a time. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhs, void **phs, void **req) {
  struct comm *c = object_get(comm, RECV, 0);
  if (c && c->tail - c->head >= 12) return *req = NULL, OK;
  return good_irecv(comm, n, data, sizes, tags, mhs, phs, req);
}
__attribute__((constructor)) static void spoil(void) { core.irecv = bad; }
