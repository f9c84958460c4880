/* test.sizes: a receive tells one byte more than arrived. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *req, int *done, int *sizes) {
  struct request *r = object_get(req, REQUEST, 0);
  int receive = r && !r->send && r->n == 1, rc = good_test(req, done, sizes);
  if (receive && *done && sizes) sizes[0]++;
  return rc;
}
__attribute__((constructor)) static void spoil(void) { core.test = bad; }
