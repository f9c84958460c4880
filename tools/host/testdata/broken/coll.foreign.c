/* coll.foreign: closeColl of a listenComm succeeds. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static int any(void *c) { return object_get(c, COLL_LISTEN, 0) ? OK : good_c_closecoll(c); }

__attribute__((constructor)) static void spoil(void) { coll.closecoll = any; }
