/* conn.once: processes never meet: accept finds nobody. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *l, void **out, int abi) { (void)l, (void)abi; return *out = NULL, OK; }
__attribute__((constructor)) static void spoil(void) { core.accept = bad; }
