/* close.unused: a receiver that never received cannot be closed. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm) {
  struct comm *c = object_get(comm, RECV, 0);
  if (c && !c->tail) FAIL(INTERNAL, "closeRecv: never used");
  return good_closerecv(comm);
}
__attribute__((constructor)) static void spoil(void) { core.closerecv = bad; }
