/* mr.inside: a send begins where its registration begins. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm, void *data, size_t size, int tag, void *mh, void *ph, void **req) {
  struct mr *m = object_get(mh, MR, 0);
  if (m && m->size < 1 << 30) data = m->base;
  return good_isend(comm, data, size, tag, mh, ph, req);
}
__attribute__((constructor)) static void spoil(void) { core.isend = bad; }
