/* The good collNet without a device. */
#include "coll.c"

static int no_context(void **ctx, void *log) { if (ctx) *ctx = NULL; return (void)log, OK; }
static int none(int *n) { return *n = 0, OK; }
__attribute__((constructor)) static void decline(void) { coll.init = no_context, coll.devices = none; }
