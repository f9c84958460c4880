/* coll.pressure: beyond the limit there is an error. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static int bad_start(void *c, const struct c_op *o, void **req) {
  int rc = good_c_start(c, o, req);
  return !rc && !*req ? INTERNAL : rc;
}

__attribute__((constructor)) static void spoil(void) { coll.start = bad_start; }
