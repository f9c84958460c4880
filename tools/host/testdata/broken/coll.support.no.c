/* coll.support.no: every operation is supported, of users' too. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static int support(int type, int op, int *yes) { return good_c_support(type, op < 4 ? op : 0, yes); }

__attribute__((constructor)) static void spoil(void) { coll.support = support; }
