/* blocking.order: connect waits until the peer accepts, so that ranks that all connect first wait for ever. */
#define TABLES 1 << 4
#include "../good.c"

/* A byte that accept writes and connect waits for. */
static int waits(void *ctx, int dev, void *handle, void **out, int abi) {
  char b;
  int rc = good_connect(ctx, dev, handle, out, abi);
  struct comm *c = *out ? object_get(*out, SEND, 0) : NULL;
  if (c) {
    struct pollfd p = {c->fd, POLLIN, 0};
    poll(&p, 1, -1);
    if (recv(c->fd, &b, 1, 0) != 1) return SYSTEM;
  }
  return rc;
}
static int wakes(void *l, void **out, int abi) {
  int rc = good_accept(l, out, abi);
  struct comm *c = *out ? object_get(*out, RECV, 0) : NULL;
  if (c && send(c->fd, "", 1, MSG_NOSIGNAL) != 1) return SYSTEM;
  return rc;
}
__attribute__((constructor)) static void spoil(void) { core.connect = waits, core.accept = wakes; }
