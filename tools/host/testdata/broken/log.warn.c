/* log.warn: failures are silent. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void **ctx, void *log) { (void)log; return good_init(ctx, NULL); }
__attribute__((constructor)) static void spoil(void) { core.init = bad; }
