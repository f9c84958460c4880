/* finalize.init: the process has three inits. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void **ctx, void *log) {
  static int n;
  if (++n > 3) FAIL(INTERNAL, "init: no more");
  return good_init(ctx, log);
}
__attribute__((constructor)) static void spoil(void) { core.init = bad; }
