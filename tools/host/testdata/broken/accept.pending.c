/* accept.pending: accept waits for a connection. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *l, void **out, int abi) {
  struct pollfd p = {(int)(intptr_t)object_get(l, LISTEN, 0) - 1, POLLIN, 0};
  poll(&p, 1, -1);
  return good_accept(l, out, abi);
}
__attribute__((constructor)) static void spoil(void) { core.accept = bad; }
