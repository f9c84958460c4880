/* conn.many: at most 24 connections, whatever maxComms says. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *ctx, int dev, void *handle, void **out, int abi) {
  static int made;
  if (made == 24) FAIL(SYSTEM, "connect: too many");
  int rc = good_connect(ctx, dev, handle, out, abi);
  return made += *out != NULL, rc;
}
__attribute__((constructor)) static void spoil(void) { core.connect = bad; }
