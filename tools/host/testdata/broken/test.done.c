/* test.done: done is written only when it is so. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *req, int *done, int *sizes) {
  int mine, rc = good_test(req, &mine, sizes);
  if (mine) *done = 1;
  return rc;
}
__attribute__((constructor)) static void spoil(void) { core.test = bad; }
