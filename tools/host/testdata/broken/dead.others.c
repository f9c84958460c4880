/* dead.others: one lost peer ends all connections. */
#define TABLES 1 << 12
#include "../good.c"

static int lost;
static int tests(void *req, int *done, int *sizes) {
  int rc = good_test(req, done, sizes);
  if (rc == REMOTE) lost = 1;
  return lost ? *done = 0, REMOTE : rc;
}
__attribute__((constructor)) static void spoil(void) { core.test = tests; }
