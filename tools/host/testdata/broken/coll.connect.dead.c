/* coll.connect.dead: a rank that has rank 0 does not wait for the others. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static int meet(struct c_comm *c, const struct handle *zero, int l) { return c->rank ? c_enter(c, zero) : c_take(c, l); }

__attribute__((constructor)) static void spoil(void) { c_meet = meet; }
