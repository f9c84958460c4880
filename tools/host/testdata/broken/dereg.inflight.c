/* dereg.inflight: memory in use is not deregistered. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm, void *mh) {
  struct comm *c = object_get(comm, RECV, 0);
  for (uint64_t s = c ? c->head : 0; c && s < c->tail; s++)
    if (c->g[s % DEPTH].e[0].mh == mh) FAIL(INTERNAL, "deregMr: in use");
  return good_deregmr(comm, mh);
}
__attribute__((constructor)) static void spoil(void) { core.deregmr = bad; }
