/* conn.self: a process that connects to itself waits for itself. */
#define TABLES 1 << 12
#include "../good.c"

static int port_of_listen;
static int listening(void *ctx, int dev, void *handle, void **out) { int rc = good_listen(ctx, dev, handle, out); return port_of_listen = ((struct handle *)handle)->port, rc; }
__attribute__((constructor)) static void spoil2(void) { core.listen = listening; }
static int bad(void *ctx, int dev, void *handle, void **out, int abi) {
  if (((struct handle *)handle)->port == port_of_listen) return *out = NULL, OK;
  return good_connect(ctx, dev, handle, out, abi);
}
__attribute__((constructor)) static void spoil(void) { core.connect = bad; }
