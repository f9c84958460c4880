/* listen.devices: the second device cannot listen. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *ctx, int dev, void *handle, void **out) { if (dev) FAIL(SYSTEM, "listen: no route"); return good_listen(ctx, dev, handle, out); }
__attribute__((constructor)) static void spoil(void) { core.listen = bad; }
