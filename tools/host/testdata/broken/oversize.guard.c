/* oversize.guard: a byte behind the receive is written where its registration goes on. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhs, void **phs, void **req) {
  struct mr *m = object_get(mhs[0], MR, 0);
  if (m && sizes[0] == 1000 && m->size == 8192) ((char *)data[0])[1000] = 0;
  return good_irecv(comm, n, data, sizes, tags, mhs, phs, req);
}
__attribute__((constructor)) static void spoil(void) { core.irecv = bad; }
