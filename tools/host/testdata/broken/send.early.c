/* send.early: isend waits for the receive. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm, void *data, size_t size, int tag, void *mh, void *ph, void **req) {
  int rc;
  while (!(rc = good_isend(comm, data, size, tag, mh, ph, req)) && !*req) poll(NULL, 0, 1);
  return rc;
}
__attribute__((constructor)) static void spoil(void) { core.isend = bad; }
