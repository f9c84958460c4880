/* close.data: a send is done when the kernel has it, and close throws away what the kernel has. The receiver's kernel takes
 * little ahead, or nothing might be left to throw away. */
#define TABLES 1 << 12
#include "../good.c"

static int tests(void *req, int *done, int *sizes) {
  struct request *r = object_get(req, REQUEST, 0);
  struct comm *c = r && r->send ? object_get(r->comm, SEND, 0) : NULL;
  struct comm *from = r && !r->send ? object_get(r->comm, RECV, 0) : NULL;
  int little = 1 << 15;
  if (from) setsockopt(from->fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
  for (unsigned i = 0; c && i < c->nw; i++)
    if (c->w[i].request == req) r->done = 1;
  return good_test(req, done, sizes);
}
static int closes(void *comm) {
  struct comm *c = object_get(comm, SEND, 0);
  struct linger now = {1, 0};
  if (c) setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  return good_closesend(comm);
}
__attribute__((constructor)) static void spoil(void) { core.test = tests, core.closesend = closes; }
