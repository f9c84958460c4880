/* test.after: a request that was done is freed memory. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *req, int *done, int *sizes) {
  if (!object_get(req, REQUEST, 0)) abort();
  return good_test(req, done, sizes);
}
__attribute__((constructor)) static void spoil(void) { core.test = bad; }
