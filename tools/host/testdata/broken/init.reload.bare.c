/* init.reload.bare: every call needs an init since the library was mapped; NCCL 2.22 does not give one. */
#define TABLES 1 << 8
#include "../good.c"

static int ready;
static int init(void **ctx, void *log) { return ready = 1, good_init(ctx, log); }
__attribute__((constructor)) static void spoil2(void) { core.init = init; }
static int bad(void *ctx, int dev, void *handle, void **out) { if (!ready) FAIL(INTERNAL, "listen: init first"); return good_listen(ctx, dev, handle, out); }
__attribute__((constructor)) static void spoil(void) { core.listen = bad; }
