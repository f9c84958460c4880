/* test.nosizes: sizes are written without a look at the address. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *req, int *done, int *sizes) {
  int rc = good_test(req, done, sizes);
  if (*done) *(volatile int *)sizes += 0;
  return rc;
}
__attribute__((constructor)) static void spoil(void) { core.test = bad; }
