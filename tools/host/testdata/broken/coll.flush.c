/* coll.flush: iflush is an error. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static int bad_iflush(void *c, void *d, int size, void *mh, void **req) { return (void)c, (void)d, (void)size, (void)mh, *req = NULL, INTERNAL; }

__attribute__((constructor)) static void spoil(void) { coll.iflush = bad_iflush; }
