/* oversize.again: test of a request that was refused does not know it the second time. */
#define TABLES 1 << 12
#include "../good.c"

static void *refused;
static int bad(void *req, int *done, int *sizes) {
  if (req && req == refused) return INTERNAL;
  int rc = good_test(req, done, sizes);
  if (rc == USAGE) refused = req;
  return rc;
}
__attribute__((constructor)) static void spoil(void) { core.test = bad; }
