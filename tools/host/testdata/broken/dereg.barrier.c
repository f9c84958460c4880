/* dereg.barrier: deregMr forgets the registration but not the receives into it. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm, void *mh) { return (void)comm, free(object_get(mh, MR, 1)), OK; }
__attribute__((constructor)) static void spoil(void) { core.deregmr = bad; }
