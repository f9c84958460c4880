/* size.zero: an empty message is an error. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm, void *data, size_t size, int tag, void *mh, void *ph, void **req) {
  if (!size) FAIL(INTERNAL, "isend: nothing to send");
  return good_isend(comm, data, size, tag, mh, ph, req);
}
__attribute__((constructor)) static void spoil(void) { core.isend = bad; }
