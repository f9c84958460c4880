/* accept.closelisten: closing the listener ends the connections that came through it. */
#define TABLES 1 << 12
#include "../good.c"

static struct { void *listener, *comm; } came[4096];
static unsigned n;
static int accepts(void *l, void **out, int abi) {
  int rc = good_accept(l, out, abi);
  if (*out) came[n % 4096].listener = l, came[n++ % 4096].comm = *out;
  return rc;
}
static int closes(void *l) {
  for (unsigned i = 0; i < 4096; i++) {
    struct comm *c = came[i].listener == l ? object_get(came[i].comm, RECV, 0) : NULL;
    if (c) shutdown(c->fd, SHUT_RDWR);
  }
  return good_closelisten(l);
}
__attribute__((constructor)) static void spoil(void) { core.accept = accepts, core.closelisten = closes; }
