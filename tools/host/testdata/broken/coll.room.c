/* coll.room: listen clears more than the handle. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static int clear(void *ctx, int dev, void *h, void **c) { return memset(h, 0, 136), good_c_listen(ctx, dev, h, c); }

__attribute__((constructor)) static void spoil(void) { coll.listen = clear; }
