/* coll.unregistered: memory is used that is not registered. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static int any(const struct c_comm *c, const struct c_op *o) { return (void)c, (void)o, 1; }

__attribute__((constructor)) static void spoil(void) { c_allowed = any; }
