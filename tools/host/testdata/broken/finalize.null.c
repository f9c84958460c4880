/* finalize.null: a context is always there. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *ctx) {
  *(volatile char *)ctx;
  return OK;
}
static char context[1];
static int init(void **ctx, void *log) { return good_log = log, *ctx = context, OK; }
__attribute__((constructor)) static void spoil(void) { core.finalize = bad, core.init = init; }
