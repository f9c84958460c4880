/* coll.close.null: NULL cannot be closed. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static int bad_closecoll(void *c) { return c ? good_c_closecoll(c) : INTERNAL; }

__attribute__((constructor)) static void spoil(void) { coll.closecoll = bad_closecoll; }
