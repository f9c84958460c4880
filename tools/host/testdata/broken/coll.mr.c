/* coll.mr: NULL cannot be deregistered. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static int bad_deregmr(void *c, void *mh) { return mh ? good_c_deregmr(c, mh) : INTERNAL; }

__attribute__((constructor)) static void spoil(void) { coll.deregmr = bad_deregmr; }
