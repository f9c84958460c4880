/* group.sizes: a group tells only its first size. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *req, int *done, int *sizes) {
  int mine[GROUP] = {0}, rc = good_test(req, done, mine);
  if (*done && sizes) sizes[0] = mine[0];
  return rc;
}
__attribute__((constructor)) static void spoil(void) { core.test = bad; }
