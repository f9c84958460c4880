/* ctx.shared: listen works only on the thread that listened first. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *ctx, int dev, void *handle, void **out) {
  static pthread_t first;
  if (!first) first = pthread_self();
  if (!pthread_equal(first, pthread_self())) FAIL(INTERNAL, "listen: another thread");
  return good_listen(ctx, dev, handle, out);
}
__attribute__((constructor)) static void spoil(void) { core.listen = bad; }
