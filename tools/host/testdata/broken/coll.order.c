/* coll.order: a long operation is done a little later than those behind it. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static int bad_test(void *req, int *done, int *size) {
  static void *seen;
  struct c_request *r = object_get(req, COLL_REQUEST, 0);
  if (r && r->done && r->size == 800000 && seen != req) return seen = req, *done = 0, OK;
  return good_c_test(req, done, size);
}

__attribute__((constructor)) static void spoil(void) { coll.test = bad_test; }
