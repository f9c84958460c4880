/* mr.concurrent: nothing is registered while a send is under way. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm, void *data, size_t size, int type, void **mh) {
  struct comm *c = object_get(comm, SEND, 0);
  if (c && (c->mhead != c->mtail || c->nw)) FAIL(INTERNAL, "regMr: busy");
  return good_regmr(comm, data, size, type, mh);
}
__attribute__((constructor)) static void spoil(void) { core.regmr = bad; }
