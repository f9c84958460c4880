/* order.test: only the oldest receive may be tested. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *req, int *done, int *sizes) {
  struct request *r = object_get(req, REQUEST, 0);
  struct comm *c = r && !r->send && !r->done ? object_get(r->comm, RECV, 0) : NULL;
  if (c && c->g[c->head % DEPTH].request != req) FAIL(INTERNAL, "test: not the oldest");
  return good_test(req, done, sizes);
}
__attribute__((constructor)) static void spoil(void) { core.test = bad; }
