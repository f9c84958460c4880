/* close.inflight: a sender with a message under way cannot be closed. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm) {
  struct comm *c = object_get(comm, SEND, 0);
  if (c && (c->mhead != c->mtail || c->nw)) FAIL(INTERNAL, "closeSend: busy");
  return good_closesend(comm);
}
__attribute__((constructor)) static void spoil(void) { core.closesend = bad; }
