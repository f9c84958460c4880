/* recv.larger: the last byte of a receive's memory is cleared, whether the message reaches it or not. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhs, void **phs, void **req) {
  if (sizes[0] && mr_covers(mhs[0], data[0], sizes[0])) ((char *)data[0])[sizes[0] - 1] = 0;
  return good_irecv(comm, n, data, sizes, tags, mhs, phs, req);
}
__attribute__((constructor)) static void spoil(void) { core.irecv = bad; }
