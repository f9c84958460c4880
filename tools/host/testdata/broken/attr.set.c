/* attr.set: unknown attributes are an error. */
#define TABLES 1 << 12
#include "../good.c"

static ncclResult_t bad(void *ctx, ncclNetAttr_v12_t *a) { return (void)ctx, a->sendCommAttr.maxConcurrentPeers < 0 ? ncclInternalError : ncclSuccess; }
__attribute__((constructor)) static void spoil(void) { ncclNetPlugin_v12.setNetAttr = bad; }
