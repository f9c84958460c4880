/* coll.zero: an all-reduce of nothing is an error. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static int some(void *c, const struct c_op *o, void **req) { return o->bytes ? good_c_start(c, o, req) : (*req = NULL, INTERNAL); }

__attribute__((constructor)) static void spoil(void) { coll.start = some; }
