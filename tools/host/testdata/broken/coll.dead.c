/* coll.dead: with three ranks the death of one is not told. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static int bad_test(void *req, int *done, int *size) {
  struct c_request *r = object_get(req, COLL_REQUEST, 0);
  struct c_comm *c = r ? object_get(r->comm, COLL, 0) : NULL;
  int rc = good_c_test(req, done, size);
  return c && c->n == 3 && rc == REMOTE ? OK : rc;
}

__attribute__((constructor)) static void spoil(void) { coll.test = bad_test; }
