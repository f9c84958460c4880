/* init.reload: the first init marks the process, and a library mapped anew trips over the mark. */
#define TABLES 1 << 12
#include "../good.c"

static int here;
static int bad(void **ctx, void *log) {
  if (!here && getenv("GOOD_WAS_HERE")) FAIL(INTERNAL, "init: opened before");
  return here = 1, setenv("GOOD_WAS_HERE", "1", 1), good_init(ctx, log);
}
__attribute__((constructor)) static void spoil(void) { core.init = bad; }
