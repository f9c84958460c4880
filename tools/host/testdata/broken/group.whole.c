/* group.whole: a group of 2000-byte buffers is done with its first message. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *req, int *done, int *sizes) {
  struct request *r = object_get(req, REQUEST, 0);
  struct comm *c = r && r->n > 1 ? object_get(r->comm, RECV, 0) : NULL;
  int rc = good_test(req, done, sizes);
  for (uint64_t s = c ? c->head : 0; c && s < c->tail; s++) {
    struct group *g = &c->g[s % DEPTH];
    for (int i = 0; g->request == req && i < g->n; i++) *done |= g->e[i].whole && g->e[i].room == 2000;
  }
  return rc;
}
__attribute__((constructor)) static void spoil(void) { core.test = bad; }
