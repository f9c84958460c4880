/* A plugin whose tuner keeps every rule. What #includes it may replace a part by a macro. */
#define TABLES 1 << 12
#include "good.c"

#include "tuner_v2.h"
#include "tuner_v6.h"

#ifndef INIT
#define INIT ncclSuccess
#endif
#ifndef COSTS /* costs and their number; id tells communicators of one process apart */
#define COSTS(cost, n, id) (void)(cost), (void)(n), (void)(id)
#endif
#ifndef GET_COLL_INFO
#define GET_COLL_INFO t_info
#endif
#ifndef CHUNK
#define CHUNK 1 << 17
#endif

static _Atomic long t_inits;

static R t_init2(size_t ranks, size_t nodes, ncclDebugLogger_t log, void **ctx) {
  (void)ranks, (void)nodes, (void)log;
  *ctx = (void *)(t_inits += 1);
  return INIT;
}
static R t_info2(void *ctx, ncclFunc_t f, size_t bytes, int coll, int nvls, int ops, int *algo, int *proto, int *channels) {
  (void)f, (void)bytes, (void)coll, (void)nvls, (void)ops, (void)channels;
  float cost[2] = {(float)*algo, (float)*proto};
  COSTS(cost, 2, (long)ctx);
  *algo = (int)cost[0], *proto = (int)cost[1];
  return ncclSuccess;
}
static R t_init(void **ctx, uint64_t id, size_t ranks, size_t nodes, ncclDebugLogger_t log, ncclNvlDomainInfo_v6_t *domains, ncclTunerConstants_v6_t *constants) {
  return (void)id, (void)domains, (void)constants, t_init2(ranks, nodes, log, ctx);
}
UNUSED static R t_info(void *ctx, ncclFunc_t f, size_t bytes, int ops, float **table, int algos, int protos, int reg, int *channels) {
  (void)f, (void)bytes, (void)ops, (void)reg, (void)channels;
  COSTS((float *)(void *)table, algos * protos, (long)ctx);
  return ncclSuccess;
}
static R t_end(void *ctx) { return (void)ctx, ncclSuccess; }
static R t_chunk(void *ctx, ncclFunc_t f, size_t bytes, int algo, int proto, int channels, size_t *chunk) {
  return (void)ctx, (void)f, (void)bytes, (void)algo, (void)proto, (void)channels, *chunk = CHUNK, ncclSuccess;
}
ncclTuner_v2_t ncclTunerPlugin_v2 = {.name = NAME, .init = t_init2, .getCollInfo = t_info2, .destroy = t_end};
ncclTuner_v6_t ncclTunerPlugin_v6 = {.name = NAME, .init = t_init, .getCollInfo = GET_COLL_INFO, .finalize = t_end, .getChunkSize = t_chunk};
