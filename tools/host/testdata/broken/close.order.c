/* close.order: an idle sender cannot be closed while a listener is open. */
#define TABLES 1 << 12
#include "../good.c"

static int any(enum kind kind) {
  for (int i = 0; i < OBJECTS; i++)
    if (objects[i].kind == kind) return 1;
  return 0;
}
static int bad(void *comm) {
  struct comm *c = object_get(comm, SEND, 0);
  if (c && c->mhead == c->mtail && !c->nw && any(LISTEN)) FAIL(INTERNAL, "closeSend: close the listener first");
  return good_closesend(comm);
}
__attribute__((constructor)) static void spoil(void) { core.closesend = bad; }
