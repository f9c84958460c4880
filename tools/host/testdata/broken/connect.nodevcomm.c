/* connect.nodevcomm: the device comm is cleared without a look at its address. */
#define TABLES 1 << 12
#include "../good.c"

static ncclResult_t bad(void *ctx, int dev, void *h, void **c, ncclNetDeviceHandle_v12_t **d) { return *d = NULL, connect12(ctx, dev, h, c, d); }
__attribute__((constructor)) static void spoil(void) { ncclNetPlugin_v12.connect = bad; }
