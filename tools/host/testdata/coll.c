/* The good plugin with collNet tables, of which COLLS names those that there are (a bit mask, default all). */
#include "good.c"
#include "good_coll.h"

#ifndef COLLS
#define COLLS 0x1ff8
#endif
#define HAS_COLL(v) (COLLS >> (v) & 1)

/* ---- adapters, one per distinct signature ---- */
UNUSED static R c_init3(ncclDebugLogger_t log) { return coll.init(NULL, (void *)log); }
UNUSED static R c_init11(void **ctx, uint64_t id, ncclDebugLogger_t log) { (void)id; return coll.init(ctx, (void *)log); }
UNUSED static R c_devices(int *n) { return coll.devices(n); }
UNUSED static R c_listen3(int dev, void *h, void **c) { return coll.listen(NULL, dev, h, c); }
UNUSED static R c_listen11(void *ctx, int dev, void *h, void **c) { return coll.listen(ctx, dev, h, c); }
UNUSED static R c_connect6(void *h[], int n, int rank, void *l, void **c) { return coll.connect(h, n, rank, l, c); }
UNUSED static R c_support(ncclDataType_t t, ncclRedOp_t o, int *yes) { return coll.support((int)t, (int)o, yes); }
UNUSED static R c_regmr3(void *c, void *d, int size, int type, void **mh) { return size < 0 ? ncclInternalError : (R)coll.regmr(c, d, (size_t)size, type, mh); }
UNUSED static R c_regmr8(void *c, void *d, size_t size, int type, void **mh) { return coll.regmr(c, d, size, type, mh); }
UNUSED static R c_deregmr(void *c, void *mh) { return coll.deregmr(c, mh); }
UNUSED static R c_allreduce9(void *c, void *s, void *r, size_t n, ncclDataType_t t, ncclRedOp_t op, void *sm, void *rm, void **q) {
  if (t < 0 || t > 11 || n > 1ul << 40) return *q = NULL, ncclInternalError;
  struct c_op o = {.kind = ALLREDUCE, .send = s, .recv = r, .bytes = n * (size_t)c_size[t], .type = (int)t, .op = (int)op, .smh = sm, .rmh = rm};
  return coll.start(c, &o, q);
}
UNUSED static R c_allreduce3(void *c, void *s, void *r, int n, ncclDataType_t t, ncclRedOp_t op, void *sm, void *rm, void **q) {
  return c_allreduce9(c, s, r, n < 0 ? SIZE_MAX : (size_t)n, t, op, sm, rm, q);
}
UNUSED static R c_iflush(void *c, void *d, int size, void *mh, void **q) { return coll.iflush(c, d, size, mh, q); }
UNUSED static R c_flush(void *c, void *d, int size, void *mh) { return coll.iflush(c, d, size, mh, NULL); }
/* ncclRemoteError came with v6. */
UNUSED static R c_old(int rc) { return rc == REMOTE ? SYSTEM : rc; }
UNUSED static R c_connect3(void *h[], int n, int rank, void *l, void **c) { return c_old(coll.connect(h, n, rank, l, c)); }
UNUSED static R c_test3(void *q, int *done, int *size) { return c_old(coll.test(q, done, size)); }
UNUSED static R c_test6(void *q, int *done, int *size) { return coll.test(q, done, size); }
UNUSED static R c_closecoll(void *c) { return coll.closecoll(c); }
UNUSED static R c_closelisten(void *c) { return coll.closelisten(c); }
UNUSED static R c_finalize(void *ctx) { return coll.finalize(ctx); }

#define PARTS(o, n, p) \
  (o).nparts = (n); \
  for (int i = 0; i < (n) && i < C_PARTS; i++) (o).part[i] = (struct c_part){(p)[i].mhandle, (p)[i].address, (p)[i].size}
#define GATHERS(v) \
  UNUSED static R c_gather##v(void *c, void *s, int n, ncclNetSGE_v##v##_t *p, size_t per, size_t off, size_t bytes, void *sm, void **q) { \
    struct c_op o = {.kind = ALLGATHER, .send = s, .bytes = bytes, .per_rank = per, .offset = off, .smh = sm}; \
    if (n < 0 || n > C_PARTS) return *q = NULL, ncclInternalError; \
    PARTS(o, n, p); \
    return coll.start(c, &o, q); \
  } \
  UNUSED static R c_scatter##v(void *c, int n, ncclNetSGE_v##v##_t *p, void *r, size_t per, size_t off, size_t bytes, ncclDataType_t t, ncclRedOp_t op, void *rm, void **q) { \
    struct c_op o = {.kind = REDUCESCATTER, .recv = r, .bytes = bytes, .per_rank = per, .offset = off, .type = (int)t, .op = (int)op, .rmh = rm}; \
    if (n < 0 || n > C_PARTS || t < 0 || t > 11) return *q = NULL, ncclInternalError; \
    PARTS(o, n, p); \
    return coll.start(c, &o, q); \
  }
#define C_PROPS(v, P, fields) UNUSED static R c_props##v(int dev, P *p) { struct props c; R rc = coll.props(dev, &c); if (!rc) fields; return rc; }
#define C_BASE(v, I, L, G, A, X) .name = NAME, .init = I, .devices = c_devices, .getProperties = c_props##v, .listen = L, .connect = c_connect##X, \
  .reduceSupport = c_support, .regMr = G, .deregMr = c_deregmr, .iallreduce = A, .test = c_test##X, .closeColl = c_closecoll, .closeListen = c_closelisten
#define C_TABLE(v) __attribute__((visibility("default"))) ncclCollNet_v##v##_t ncclCollNetPlugin_v##v

#if HAS_COLL(3)
C_PROPS(3, ncclNetProperties_v3_t, (P3)) C_TABLE(3) = {C_BASE(3, c_init3, c_listen3, c_regmr3, c_allreduce3, 3), .flush = c_flush};
#endif
#if HAS_COLL(4)
C_PROPS(4, ncclNetProperties_v4_t, (P3)) C_TABLE(4) = {C_BASE(4, c_init3, c_listen3, c_regmr3, c_allreduce3, 3), .iflush = c_iflush};
#endif
#if HAS_COLL(5)
C_PROPS(5, ncclNetProperties_v6_t, (P5)) C_TABLE(5) = {C_BASE(5, c_init3, c_listen3, c_regmr3, c_allreduce3, 3), .iflush = c_iflush};
#endif
#if HAS_COLL(6)
C_PROPS(6, ncclNetProperties_v6_t, (P5)) C_TABLE(6) = {C_BASE(6, c_init3, c_listen3, c_regmr3, c_allreduce3, 6), .iflush = c_iflush};
#endif
#if HAS_COLL(7)
C_PROPS(7, ncclNetProperties_v7_t, (P7)) C_TABLE(7) = {C_BASE(7, c_init3, c_listen3, c_regmr3, c_allreduce3, 6), .iflush = c_iflush};
#endif
#if HAS_COLL(8)
GATHERS(8) C_PROPS(8, ncclNetProperties_v8_t, (P8))
C_TABLE(8) = {C_BASE(8, c_init3, c_listen3, c_regmr8, c_allreduce3, 6), .iflush = c_iflush, .iallgather = c_gather8, .ireducescatter = c_scatter8};
#endif
#if HAS_COLL(9)
GATHERS(9) C_PROPS(9, ncclNetProperties_v9_t, (P9))
C_TABLE(9) = {C_BASE(9, c_init3, c_listen3, c_regmr8, c_allreduce9, 6), .iflush = c_iflush, .iallgather = c_gather9, .ireducescatter = c_scatter9};
#endif
#if HAS_COLL(10)
GATHERS(10) C_PROPS(10, ncclNetProperties_v10_t, (P9))
C_TABLE(10) = {C_BASE(10, c_init3, c_listen3, c_regmr8, c_allreduce9, 6), .iflush = c_iflush, .iallgather = c_gather10, .ireducescatter = c_scatter10};
#endif
#if HAS_COLL(11)
GATHERS(11) C_PROPS(11, ncclNetProperties_v11_t, (P11))
C_TABLE(11) = {C_BASE(11, c_init11, c_listen11, c_regmr8, c_allreduce9, 6), .iflush = c_iflush, .iallgather = c_gather11, .ireducescatter = c_scatter11, .finalize = c_finalize};
#endif
#if HAS_COLL(12)
GATHERS(12) C_PROPS(12, ncclNetProperties_v12_t, (P12))
C_TABLE(12) = {C_BASE(12, c_init11, c_listen11, c_regmr8, c_allreduce9, 6), .iflush = c_iflush, .iallgather = c_gather12, .ireducescatter = c_scatter12, .finalize = c_finalize};
#endif
