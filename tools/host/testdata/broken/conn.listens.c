/* conn.listens: the sixth of listens that all wait gets the handle of the fifth. */
#define TABLES 1 << 12
#include "../good.c"

static int listens, met;
static int bad_listen(void *ctx, int dev, void *handle, void **out) {
  static struct handle last;
  int rc = good_listen(ctx, dev, handle, out);
  if (listens++ == 5 && !met) memcpy(handle, &last, sizeof last);
  memcpy(&last, handle, sizeof last);
  return rc;
}
static int bad_accept(void *listener, void **out, int abi) { return met = 1, good_accept(listener, out, abi); }
static int bad_close(void *listener) { return met = 1, good_closelisten(listener); }
__attribute__((constructor)) static void spoil(void) { core.listen = bad_listen, core.accept = bad_accept, core.closelisten = bad_close; }
