/* listen.beyond: every device can listen, also one that does not exist. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *ctx, int dev, void *handle, void **out) { return good_listen(ctx, dev < 0 || dev > 1 ? 0 : dev, handle, out); }
__attribute__((constructor)) static void spoil(void) { core.listen = bad; }
