/* recv.optional: a receive whose completion nobody waits for leaves *request alone. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhs, void **phs, void **req) {
  void *mine, **out = *req == (void *)1 ? &mine : req;
  return good_irecv(comm, n, data, sizes, tags, mhs, phs, out);
}
__attribute__((constructor)) static void spoil(void) { core.irecv = bad; }
