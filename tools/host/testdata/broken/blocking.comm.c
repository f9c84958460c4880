/* blocking.comm: connect returns NULL at first, as from v5 on. */
#define TABLES 1 << 4
#include "../good.c"

static int bad(void *ctx, int dev, void *handle, void **out, int abi) {
  static int turn;
  if (turn++ % 2 == 0) return *out = NULL, OK;
  return good_connect(ctx, dev, handle, out, abi);
}
__attribute__((constructor)) static void spoil(void) { core.connect = bad; }
