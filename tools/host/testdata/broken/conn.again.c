/* conn.again: what a connection took is not given back when it closes, and there is enough for ten. */
#define TABLES 1 << 12
#include "../good.c"

static int closed;

static int bad_connect(void *ctx, int dev, void *handle, void **out, int abi) {
  if (closed == 10) FAIL(SYSTEM, "connect: nothing is left");
  return good_connect(ctx, dev, handle, out, abi);
}
static int bad_close(void *c) {
  int rc = good_closesend(c);
  return closed += !rc, rc;
}
__attribute__((constructor)) static void spoil(void) { core.connect = bad_connect, core.closesend = bad_close; }
