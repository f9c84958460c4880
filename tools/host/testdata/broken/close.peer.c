/* close.peer: a sender that closes fills the receives that wait with empty messages. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm) {
  struct comm *c = object_get(comm, SEND, 0);
  void *req;
  if (c) pthread_mutex_lock(&c->lock), progress(c, 0), pthread_mutex_unlock(&c->lock);
  while (c && !c->rc && c->head != c->tail && !good_isend(comm, NULL, 0, c->g[c->head % DEPTH].e[0].tag, NULL, NULL, &req) && req) continue;
  return good_closesend(comm);
}
__attribute__((constructor)) static void spoil(void) { core.closesend = bad; }
