/* table.name: the name is filled in by init. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void **ctx, void *log) { ncclNetPlugin_v12.name = "good"; return good_init(ctx, log); }
__attribute__((constructor)) static void spoil(void) { core.init = bad, ncclNetPlugin_v12.name = NULL; }
