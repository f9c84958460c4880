/* dereg.bad: a registration that is gone is freed memory. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm, void *mh) {
  if (mh && !object_get(mh, MR, 0)) abort();
  return good_deregmr(comm, mh);
}
__attribute__((constructor)) static void spoil(void) { core.deregmr = bad; }
