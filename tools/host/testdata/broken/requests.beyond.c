/* requests.beyond: one receive too many is an error. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhs, void **phs, void **req) {
  struct comm *c = object_get(comm, RECV, 0);
  if (c && c->tail - c->head == DEPTH) FAIL(INTERNAL, "irecv: too many");
  return good_irecv(comm, n, data, sizes, tags, mhs, phs, req);
}
__attribute__((constructor)) static void spoil(void) { core.irecv = bad; }
