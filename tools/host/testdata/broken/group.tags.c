/* group.tags: tags are ignored: the first send goes to the first buffer. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm, void *data, size_t size, int tag, void *mh, void *ph, void **req) {
  struct comm *c = object_get(comm, SEND, 0);
  struct group *g = c ? &c->g[c->head % DEPTH] : NULL;
  for (int i = 0; c && c->head != c->tail && i < g->n; i++)
    if (!g->e[i].taken) {
      tag = g->e[i].tag;
      break;
    }
  return good_isend(comm, data, size, tag, mh, ph, req);
}
__attribute__((constructor)) static void spoil(void) { core.isend = bad; }
