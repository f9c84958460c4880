/* close.twice: a listener that is closed is freed memory. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *l) {
  if (l && !object_get(l, LISTEN, 0)) abort();
  return good_closelisten(l);
}
__attribute__((constructor)) static void spoil(void) { core.closelisten = bad; }
