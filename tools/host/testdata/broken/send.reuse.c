/* send.reuse: a send of 12 MiB is done before its bytes have left. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *req, int *done, int *sizes) {
  struct request *r = object_get(req, REQUEST, 0);
  if (r && r->send && r->size[0] == 12 << 20) r->done = 1;
  return good_test(req, done, sizes);
}
__attribute__((constructor)) static void spoil(void) { core.test = bad; }
