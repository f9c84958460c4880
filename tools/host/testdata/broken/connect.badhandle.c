/* connect.badhandle: the handle is trusted to hold a pointer. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *ctx, int dev, void *handle, void **out, int abi) {
  struct handle h;
  memcpy(&h, handle, sizeof h);
  if (h.magic != 0x600d600d) *(volatile char *)(h.state >> 20) = 0;
  return good_connect(ctx, dev, handle, out, abi);
}
__attribute__((constructor)) static void spoil(void) { core.connect = bad; }
