/* listen.room: a 128-byte handle is written for v4, which has room for 64. */
#define TABLES 1 << 4
#include "../good.c"

static int bad(void *ctx, int dev, void *handle, void **out) { int rc = good_listen(ctx, dev, handle, out); return memset((char *)handle + 64, 0, 1), rc; }
__attribute__((constructor)) static void spoil(void) { core.listen = bad; }
