/* oversize.refused: a send larger than its receive is cut. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm, void *data, size_t size, int tag, void *mh, void *ph, void **req) {
  struct comm *c = object_get(comm, SEND, 0);
  struct group *g = c ? &c->g[c->head % DEPTH] : NULL;
  if (c && c->head == c->tail) pthread_mutex_lock(&c->lock), progress(c, 0), pthread_mutex_unlock(&c->lock);
  if (c && c->head != c->tail && g->n == 1 && g->e[0].tag == tag && size > g->e[0].room) size = g->e[0].room;
  return good_isend(comm, data, size, tag, mh, ph, req);
}
__attribute__((constructor)) static void spoil(void) { core.isend = bad; }
