/* dereg.null: a registration that was never made is unknown. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm, void *mh) {
  if (!mh) FAIL(INTERNAL, "deregMr: unknown mhandle");
  return good_deregmr(comm, mh);
}
__attribute__((constructor)) static void spoil(void) { core.deregmr = bad; }
