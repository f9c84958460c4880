/* order.match: of two receives that wait, the younger gets the first message. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhs, void **phs, void **req) {
  int rc = good_irecv(comm, n, data, sizes, tags, mhs, phs, req);
  struct comm *c = object_get(comm, RECV, 0);
  if (!rc && *req && n == 1 && sizes[0] == 5000 && c->tail - c->head == 2) {
    struct entry *a = c->g[c->head % DEPTH].e, *b = c->g[(c->tail - 1) % DEPTH].e;
    for (int i = 0; i < n; i++) {
      char *d = a[i].data;
      a[i].data = b[i].data, b[i].data = d;
    }
  }
  return rc;
}
__attribute__((constructor)) static void spoil(void) { core.irecv = bad; }
