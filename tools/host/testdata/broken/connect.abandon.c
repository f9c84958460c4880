/* connect.abandon: a listener with a connection waiting cannot be closed. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *l) {
  struct pollfd p = {(int)(intptr_t)object_get(l, LISTEN, 0) - 1, POLLIN, 0};
  if (poll(&p, 1, 100) > 0) FAIL(INTERNAL, "closeListen: not accepted yet");
  return good_closelisten(l);
}
__attribute__((constructor)) static void spoil(void) { core.closelisten = bad; }
