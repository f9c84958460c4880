/* coll.context: collNet has no devices, but its init gives a context. */
#define TABLES 1 << 12
#include "../good.c"

static ncclResult_t c_init(void **ctx, uint64_t id, ncclDebugLogger_t log) { return (void)id, (void)log, *ctx = (void *)1, ncclSuccess; }
static ncclResult_t c_devices(int *n) { return *n = 0, ncclSuccess; }
static ncclResult_t c_props(int dev, ncclNetProperties_v12_t *p) { return props12(dev, p); }
static ncclResult_t c_listen(void *ctx, int dev, void *h, void **c) { return (void)ctx, (void)dev, (void)h, *c = NULL, ncclInternalError; }
static ncclResult_t c_connect(void *h[], int n, int rank, void *l, void **c) { return (void)h, (void)n, (void)rank, (void)l, *c = NULL, ncclInternalError; }
static ncclResult_t c_reduce(ncclDataType_t t, ncclRedOp_t o, int *yes) { return (void)t, (void)o, *yes = 0, ncclSuccess; }
static ncclResult_t c_regmr(void *c, void *d, size_t size, int type, void **mh) { return (void)c, (void)d, (void)size, (void)type, *mh = NULL, ncclInternalError; }
static ncclResult_t c_one(void *c) { return (void)c, ncclInternalError; }
static ncclResult_t c_two(void *c, void *mh) { return (void)c, (void)mh, ncclInternalError; }
static ncclResult_t c_allreduce(void *c, void *s, void *r, size_t n, ncclDataType_t t, ncclRedOp_t o, void *sm, void *rm, void **q) {
  return (void)c, (void)s, (void)r, (void)n, (void)t, (void)o, (void)sm, (void)rm, *q = NULL, ncclInternalError;
}
static ncclResult_t c_test(void *q, int *done, int *size) { return (void)q, (void)size, *done = 0, ncclInternalError; }
ncclCollNet_v12_t ncclCollNetPlugin_v12 = {.name = NAME, .init = c_init, .devices = c_devices, .getProperties = c_props, .listen = c_listen, .connect = c_connect,
  .reduceSupport = c_reduce, .regMr = c_regmr, .deregMr = c_two, .iallreduce = c_allreduce, .test = c_test, .closeColl = c_one, .closeListen = c_one, .finalize = c_one};
