/* init.repeat: a second init fails. */
#define TABLES 1 << 6
#include "../good.c"

static int bad(void **ctx, void *log) { static int once; if (once++) FAIL(INTERNAL, "init: twice"); return good_init(ctx, log); }
__attribute__((constructor)) static void spoil(void) { core.init = bad; }
