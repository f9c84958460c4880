/* mr.room: a receive that says more room than its registration has left is refused. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhs, void **phs, void **req) {
  struct mr *m = object_get(mhs[0], MR, 0);
  if (m && sizes[0] == 40000 && (size_t)((char *)data[0] - m->base) + sizes[0] > m->size) FAIL(INTERNAL, "irecv: outside the registration");
  return good_irecv(comm, n, data, sizes, tags, mhs, phs, req);
}
__attribute__((constructor)) static void spoil(void) { core.irecv = bad; }
