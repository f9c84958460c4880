/* dead.error: a receive whose peer has died waits for ever. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *req, int *done, int *sizes) {
  struct request *r = object_get(req, REQUEST, 0);
  int receive = r && !r->send, rc = good_test(req, done, sizes);
  return receive && rc == REMOTE ? OK : rc;
}
__attribute__((constructor)) static void spoil(void) { core.test = bad; }
