/* send.retry: isend returns NULL although the message is on its way, and the repetition sends it again. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm, void *data, size_t size, int tag, void *mh, void *ph, void **req) {
  static unsigned turn;
  int rc = size == 40000 ? good_isend(comm, data, size, tag, mh, ph, req) : OK;
  if (size == 40000 && !rc && *req && turn++ % 2 == 0) *req = NULL;
  if (size == 40000) return rc;
  return good_isend(comm, data, size, tag, mh, ph, req);
}
__attribute__((constructor)) static void spoil(void) { core.isend = bad; }
