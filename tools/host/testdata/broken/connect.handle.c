/* connect.handle: the handle's address is kept, and written to at each send. */
#define TABLES 1 << 12
#include "../good.c"

static char *kept;
static int connects(void *ctx, int dev, void *handle, void **out, int abi) { return kept = handle, good_connect(ctx, dev, handle, out, abi); }
static int sends(void *comm, void *data, size_t size, int tag, void *mh, void *ph, void **req) {
  *(volatile char *)(kept + 20) = 1;
  return good_isend(comm, data, size, tag, mh, ph, req);
}
__attribute__((constructor)) static void spoil(void) { core.connect = connects, core.isend = sends; }
