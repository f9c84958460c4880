/* A small net plugin that keeps the whole contract, one table per version named in TABLES (a bit mask, default all).
 * Broken plugins include this file and replace one act, so that a conformance rule can be seen to fail alone. */
#include "good_ops.h"

#include "net_v2.h"
#include "net_v3.h"
#include "net_v4.h"
#include "net_v5.h"
#include "net_v6.h"
#include "net_v7.h"
#include "net_v8.h"
#include "net_v9.h"
#include "net_v10.h"
#include "net_v11.h"
#include "net_v12.h"

#ifndef TABLES
#define TABLES 0x1ffc
#endif
#define HAS(v) (TABLES >> (v) & 1)
#define NAME "good"
#define R ncclResult_t
#define UNUSED __attribute__((unused))

/* ---- adapters, one per distinct signature ---- */
UNUSED static R init2(ncclDebugLogger_t log) { return core.init(NULL, (void *)log); }
UNUSED static R init10(ncclDebugLogger_t log, ncclProfilerCallback_t prof) { (void)prof; return core.init(NULL, (void *)log); }
UNUSED static R devices(int *n) { return core.devices(n); }
UNUSED static R ptrsupport(int dev, int *types) { struct props p; R rc = core.props(dev, &p); if (!rc) *types = p.ptr; return rc; }
UNUSED static R pcipath(int dev, char **path) { struct props p; R rc = core.props(dev, &p); if (!rc) *path = p.pci ? strdup(p.pci) : NULL; return rc; }
UNUSED static R listen2(int dev, void *h, void **c) { return core.listen(NULL, dev, h, c); }
UNUSED static R listen11(void *ctx, int dev, void *h, void **c) { return core.listen(ctx, dev, h, c); }
UNUSED static R regmr2(void *c, void *d, int size, int type, void **mh) { return size < 0 ? ncclInternalError : (R)core.regmr(c, d, (size_t)size, type, mh); }
UNUSED static R regmr8(void *c, void *d, size_t size, int type, void **mh) { return core.regmr(c, d, size, type, mh); }
UNUSED static R deregmr(void *c, void *mh) { return core.deregmr(c, mh); }
UNUSED static R isend2(void *c, void *d, int size, void *mh, void **req) { return core.isend(c, d, (size_t)size, 0, mh, NULL, req); }
UNUSED static R isend5(void *c, void *d, int size, int tag, void *mh, void **req) { return core.isend(c, d, (size_t)size, tag, mh, NULL, req); }
UNUSED static R isend9(void *c, void *d, size_t size, int tag, void *mh, void **req) { return core.isend(c, d, size, tag, mh, NULL, req); }
UNUSED static R isend10(void *c, void *d, size_t size, int tag, void *mh, void *ph, void **req) { return core.isend(c, d, size, tag, mh, ph, req); }
UNUSED static R irecv2(void *c, void *d, int size, void *mh, void **req) { size_t s = (size_t)size; return core.irecv(c, 1, &d, &s, NULL, &mh, NULL, req); }
UNUSED static R irecv5(void *c, int n, void **d, int *sizes, int *tags, void **mh, void **req) {
  size_t s[GROUP] = {0};
  for (int i = 0; i < n && i < GROUP; i++) s[i] = (size_t)sizes[i];
  return core.irecv(c, n, d, s, tags, mh, NULL, req);
}
UNUSED static R irecv9(void *c, int n, void **d, size_t *s, int *tags, void **mh, void **req) { return core.irecv(c, n, d, s, tags, mh, NULL, req); }
UNUSED static R irecv10(void *c, int n, void **d, size_t *s, int *tags, void **mh, void **ph, void **req) { return core.irecv(c, n, d, s, tags, mh, ph, req); }
UNUSED static R flush2(void *c, void *d, int size, void *mh) { return core.iflush(c, 1, &d, &size, &mh, NULL); }
UNUSED static R iflush4(void *c, void *d, int size, void *mh, void **req) { return core.iflush(c, 1, &d, &size, &mh, req); }
UNUSED static R iflush5(void *c, int n, void **d, int *sizes, void **mh, void **req) { return core.iflush(c, n, d, sizes, mh, req); }
UNUSED static R test(void *req, int *done, int *sizes) { return core.test(req, done, sizes); }
UNUSED static R closesend(void *c) { return core.closesend(c); }
UNUSED static R closerecv(void *c) { return core.closerecv(c); }
UNUSED static R closelisten(void *c) { return core.closelisten(c); }
UNUSED static R finalize(void *ctx) { return core.finalize(ctx); }

/* ---- one table per version: P sets the property fields the version has, C its connect and accept ---- */
#define P3 p->name = (char *)c.name, p->pciPath = (char *)c.pci, p->guid = c.guid, p->ptrSupport = c.ptr, p->speed = c.speed, p->port = c.port, p->maxComms = c.comms
#define P5 P3, p->latency = c.latency, p->maxRecvs = c.recvs
#define P7 P5, p->netDeviceType = NCCL_NET_DEVICE_HOST, p->netDeviceVersion = 0
#define P8 P7, p->regIsGlobal = 0
#define P9 P8, p->forceFlush = 0, p->vProps.ndevs = 1, p->vProps.devs[0] = dev, p->maxP2pBytes = c.p2p, p->maxCollBytes = c.coll
#define P11 P9, p->maxMultiRequestSize = c.multi
#define P12 P11, p->railId = (int16_t)c.rail, p->planeId = (int16_t)c.plane
#define PROPS(v, fields) static R props##v(int dev, ncclNetProperties_v##v##_t *p) { struct props c; R rc = core.props(dev, &c); if (!rc) fields; return rc; }
#define CONNECT2(v) \
  static R connect##v(int dev, void *h, void **c) { return core.connect(NULL, dev, h, c, v); } \
  static R take##v(void *l, void **c) { return core.accept(l, c, v); }
#define ACCEPT7(v) static R take##v(void *l, void **c, ncclNetDeviceHandle_v##v##_t **d) { (void)d; return core.accept(l, c, v); }
#define CONNECT7(v) static R connect##v(int dev, void *h, void **c, ncclNetDeviceHandle_v##v##_t **d) { (void)d; return core.connect(NULL, dev, h, c, v); } ACCEPT7(v)
#define CONNECT10(v) static R connect##v(int dev, ncclNetCommConfig_v##v##_t *g, void *h, void **c, ncclNetDeviceHandle_v##v##_t **d) { (void)g, (void)d; return core.connect(NULL, dev, h, c, v); } ACCEPT7(v)
#define CONNECT11(v) \
  static R init##v(void **ctx, uint64_t id, ncclNetCommConfig_v##v##_t *g, ncclDebugLogger_t log, ncclProfilerCallback_t prof) { (void)id, (void)g, (void)prof; return core.init(ctx, (void *)log); } \
  static R connect##v(void *ctx, int dev, void *h, void **c, ncclNetDeviceHandle_v##v##_t **d) { (void)d; return core.connect(ctx, dev, h, c, v); } ACCEPT7(v)
#define BASE(v, I, L, G, S, V) .name = NAME, .init = I, .devices = devices, .listen = L, .connect = connect##v, .accept = take##v, \
  .regMr = G, .deregMr = deregmr, .isend = S, .irecv = V, .test = test, .closeSend = closesend, .closeRecv = closerecv, .closeListen = closelisten
#define TABLE(v) __attribute__((visibility("default"))) ncclNet_v##v##_t ncclNetPlugin_v##v

#if HAS(2)
CONNECT2(2) TABLE(2) = {BASE(2, init2, listen2, regmr2, isend2, irecv2), .pciPath = pcipath, .ptrSupport = ptrsupport, .flush = flush2};
#endif
#if HAS(3)
PROPS(3, (P3)) CONNECT2(3) TABLE(3) = {BASE(3, init2, listen2, regmr2, isend2, irecv2), .getProperties = props3, .flush = flush2};
#endif
#if HAS(4)
PROPS(4, (P3)) CONNECT2(4) TABLE(4) = {BASE(4, init2, listen2, regmr2, isend2, irecv2), .getProperties = props4, .iflush = iflush4};
#endif
#if HAS(5)
static R props5(int dev, ncclNetProperties_v6_t *p) { struct props c; R rc = core.props(dev, &c); if (!rc) P5; return rc; }
CONNECT2(5) TABLE(5) = {BASE(5, init2, listen2, regmr2, isend5, irecv5), .getProperties = props5, .iflush = iflush5};
#endif
#if HAS(6)
PROPS(6, (P5)) CONNECT2(6) TABLE(6) = {BASE(6, init2, listen2, regmr2, isend5, irecv5), .getProperties = props6, .iflush = iflush5};
#endif
#if HAS(7)
PROPS(7, (P7)) CONNECT7(7) TABLE(7) = {BASE(7, init2, listen2, regmr2, isend5, irecv5), .getProperties = props7, .iflush = iflush5};
#endif
#if HAS(8)
PROPS(8, (P8)) CONNECT7(8) TABLE(8) = {BASE(8, init2, listen2, regmr8, isend5, irecv5), .getProperties = props8, .iflush = iflush5};
#endif
#if HAS(9)
PROPS(9, (P9)) CONNECT7(9) TABLE(9) = {BASE(9, init2, listen2, regmr8, isend9, irecv9), .getProperties = props9, .iflush = iflush5};
#endif
#if HAS(10)
PROPS(10, (P9)) CONNECT10(10) TABLE(10) = {BASE(10, init10, listen2, regmr8, isend10, irecv10), .getProperties = props10, .iflush = iflush5};
#endif
#if HAS(11)
PROPS(11, (P11)) CONNECT11(11) TABLE(11) = {BASE(11, init11, listen11, regmr8, isend10, irecv10), .getProperties = props11, .iflush = iflush5, .finalize = finalize};
#endif
#if HAS(12)
PROPS(12, (P12)) CONNECT11(12) TABLE(12) = {BASE(12, init12, listen11, regmr8, isend10, irecv10), .getProperties = props12, .iflush = iflush5, .finalize = finalize};
#endif
