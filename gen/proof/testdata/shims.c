/* Calls every kind of shim and adapter against a core made of recorders, and
 * checks what reaches it. Built with sanitizers; the functions of the core that
 * are not here trap. Prints "ok", or the lines that failed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compat.h"
#include "nccl/net_v10.h"
#include "nccl/net_v11.h"
#include "nccl/net_v12.h"
#include "nccl/net_v2.h"
#include "nccl/net_v3.h"
#include "nccl/net_v4.h"
#include "nccl/net_v6.h"
#include "nccl/net_v8.h"
#include "nccl/net_v9.h"
#include "nccl/profiler_v1.h"
#include "nccl/profiler_v4.h"
#include "nccl/profiler_v5.h"
#include "nccl/profiler_v6.h"

extern const ncclNet_v2_t ncclNetPlugin_v2;
extern const ncclNet_v3_t ncclNetPlugin_v3;
extern const ncclNet_v4_t ncclNetPlugin_v4;
extern const ncclNet_v6_t ncclNetPlugin_v6;
extern const ncclNet_v8_t ncclNetPlugin_v8;
extern const ncclNet_v9_t ncclNetPlugin_v9;
extern const ncclNet_v10_t ncclNetPlugin_v10;
extern const ncclNet_v11_t ncclNetPlugin_v11;
extern const ncclNet_v12_t ncclNetPlugin_v12;
extern const ncclCollNet_v3_t ncclCollNetPlugin_v3;
extern const ncclCollNet_v8_t ncclCollNetPlugin_v8;
extern const ncclProfiler_v1_t ncclProfiler_v1;
extern const ncclProfiler_v4_t ncclProfiler_v4;
extern const ncclProfiler_v5_t ncclProfiler_v5;
extern const ncclProfiler_v6_t ncclProfiler_v6;

static int failures;
#define CHECK(condition)                                      \
  do {                                                        \
    if (!(condition)) {                                       \
      printf("line %d: %s\n", __LINE__, #condition);          \
      failures++;                                             \
    }                                                         \
  } while (0)

#define P(n) ((void*)(uintptr_t)(n))
#define MISUSE 3
#define TIMED_OUT 77

/* ---- the core: recorders. Those called took_ get what the generated prototype of weft_ has under the same names. ---- */
static struct {
  int calls, forked, misuse, n, tag, table, until, config, kind;
  uintptr_t ctx, comm;
  size_t size, sizes[8];
  int tags[8];
  void *data[8], *mhandles[8], *phandle, **phandles, *request;
  int64_t deadline_ms;
  ncclNetSGE_cur_t parts[64];
  uintptr_t log, prof, heard;
} got;

uint32_t weft_progress_epoch;
int weft_forked(void) { return got.forked; }
int weft_enter(uintptr_t logger) {
  if (logger) got.heard = logger;
  return got.forked;
}
int weft_connect_waits(const void* handle, void** comm) {
  CHECK(handle && comm);
  return 0;
}
int weft_accept_waits(uintptr_t listen, void** comm) {
  CHECK(listen && comm);
  return 0;
}
void weft_chain_know(const struct weft_chain_profiler* const* all, int count) { (void)all; (void)count; }
void weft_chain_init(uintptr_t context, int* mask) { CHECK(mask); (void)context; }
void weft_chain_finalize(uintptr_t context) { (void)context; }
static const char* said_name;
static uint64_t said_hash;
void weft_chain_says(const char* name, uint64_t hash) { said_name = name, said_hash = hash; }
const char* weft_chain_name(void) { return said_name; }
uint64_t weft_chain_hash(void) { return said_hash; }
static int said_steps;
void weft_chain_moves(int steps) { said_steps = steps; }
int weft_chain_steps(void) { return said_steps; }
int weft_misuse(const char* function, const char* what, uint64_t value) {
  CHECK(function && what && (int64_t)value != 1);
  got.misuse++;
  return MISUSE;
}
int weft_null(const char* function, const char* name) {
  CHECK(function && name);
  return MISUSE;
}
int weft_isend(void* sendComm, void* data, size_t size, int tag, void* mhandle, void* phandle, void** request) {
  got.calls++, got.comm = (uintptr_t)sendComm, got.data[0] = data, got.size = size, got.tag = tag, got.mhandles[0] = mhandle, got.phandle = phandle;
  *request = P(90);
  return 0;
}
int weft_irecv(void* recvComm, int n, void** data, size_t* sizes, int* tags, void** mhandles, void** phandles, void** request) {
  got.calls++, got.comm = (uintptr_t)recvComm, got.n = n, got.request = *request, got.phandles = phandles;
  for (int i = 0; i < n; i++) got.data[i] = data[i], got.sizes[i] = sizes[i], got.tags[i] = tags[i], got.mhandles[i] = mhandles[i];
  *request = P(91);
  return 0;
}
int weft_iflush(void* recvComm, int n, void** data, int* sizes, void** mhandles, void** request) {
  got.calls++, got.comm = (uintptr_t)recvComm, got.n = n, got.data[0] = data[0], got.size = (size_t)sizes[0], got.mhandles[0] = mhandles[0];
  *request = got.until < 0 ? NULL : P(92);
  return 0;
}
int weft_test(void* request, int* done, int* sizes) {
  CHECK(request == P(92));
  CHECK(sizes == NULL);
  *done = got.until-- <= 0;
  return 0;
}
int took_net_init(int table, uintptr_t* ctx, uint64_t commId, ncclNetCommConfig_cur_t* config, uintptr_t logFunction, uintptr_t profFunction) {
  got.calls++, got.table = table, got.config = config ? config->trafficClass : -100, got.log = logFunction, got.prof = profFunction;
  CHECK((ctx != NULL) == (table >= 11));
  CHECK((commId != 0) == (table >= 11));
  return 0;
}
int took_net_connect(uintptr_t ctx, int dev, void* handle, uintptr_t* sendComm, ncclNetDeviceHandle_cur_t** sendDevComm, ncclNetCommConfig_cur_t* config) {
  got.calls++, got.ctx = ctx, got.config = config ? config->trafficClass : -100;
  CHECK(dev == 5 && handle == P(50));
  if (sendDevComm) CHECK(*sendDevComm == NULL); /* Go must not find the host's garbage there */
  *sendComm = got.until-- > 0 ? 0 : 93;
  if (got.until == 1) __atomic_add_fetch(&weft_progress_epoch, 1, __ATOMIC_RELEASE);
  return 0;
}
int took_net_accept(uintptr_t listenComm, uintptr_t* recvComm, ncclNetDeviceHandle_cur_t** recvDevComm) {
  got.calls++;
  CHECK(listenComm == 51);
  if (recvDevComm) CHECK(*recvDevComm == NULL);
  *recvComm = got.until-- > 0 ? 0 : 94;
  return 0;
}
int took_net_listen(uintptr_t ctx, int dev, void* handle, uintptr_t* listenComm) {
  got.calls++, got.ctx = ctx;
  CHECK(dev == 5 && handle == P(50));
  *listenComm = 51;
  return 0;
}
int took_net_regMr(uintptr_t comm, uintptr_t data, size_t size, int type, uintptr_t* mhandle) {
  got.calls++, got.comm = comm, got.data[0] = P(data), got.size = size, got.tag = type;
  *mhandle = 95;
  return 0;
}
int took_net_getProperties(int dev, ncclNetProperties_cur_t* props) {
  CHECK(dev == 5);
  memset(props, 0, sizeof *props);
  props->name = "eth5", props->pciPath = got.tag == -1 ? NULL : "/sys/5", props->guid = 0x55, props->ptrSupport = NCCL_PTR_HOST | NCCL_PTR_CUDA | NCCL_PTR_DMABUF;
  props->regIsGlobal = 1, props->forceFlush = 1, props->speed = 25000, props->port = 2, props->latency = 1.5f, props->maxComms = 100, props->maxRecvs = 8;
  props->netDeviceVersion = 7, props->maxP2pBytes = 1 << 30, props->maxCollBytes = 1 << 29, props->maxMultiRequestSize = 3, props->railId = 4, props->planeId = 6;
  props->vProps.ndevs = 8;
  for (int i = 0; i < 8; i++) props->vProps.devs[i] = 10 + i;
  return 0;
}
int64_t weft_blocking_deadline_ms(int kind) {
  got.kind = kind;
  return got.deadline_ms;
}
int weft_blocking_timedout(int kind, int table, int64_t waited_ms) {
  CHECK(kind == got.kind);
  CHECK(waited_ms >= got.deadline_ms);
  got.table = table;
  return TIMED_OUT;
}
int took_coll_iallgather(uintptr_t collComm, uintptr_t sendData, int nRecvParts, ncclNetSGE_cur_t* recvParts, size_t bytesPerRank, size_t windowOffset, size_t windowBytes, uintptr_t sendMhandle, uintptr_t* request) {
  got.calls++, got.n = nRecvParts;
  CHECK(collComm == 60 && sendData == 61 && bytesPerRank == 62 && windowOffset == 63 && windowBytes == 64 && sendMhandle == 65);
  memcpy(got.parts, recvParts, (size_t)nRecvParts * sizeof *recvParts);
  *request = 96;
  return 0;
}
int took_coll_iflush(uintptr_t collComm, uintptr_t data, int size, uintptr_t mhandle, uintptr_t* request) {
  CHECK(collComm == 60 && data == 61 && size == 62 && mhandle == 63);
  *request = 97;
  return 0;
}
int took_coll_test(uintptr_t request, int* done, int* size) {
  CHECK(request == 97 && size != NULL);
  *done = got.until-- <= 0;
  return 0;
}
static ncclProfilerEventDescr_cur_t descr, zero;
static ncclProfilerEventStateArgs_cur_t args;
static int args_given;
int took_prof_startEvent(uintptr_t context, uintptr_t* eHandle, ncclProfilerEventDescr_cur_t* eDescr) {
  CHECK(context == 70);
  if (eDescr) descr = *eDescr;
  *eHandle = 98;
  return 0;
}
int took_prof_recordEventState(uintptr_t eHandle, ncclProfilerEventState_cur_t eState, ncclProfilerEventStateArgs_cur_t* eStateArgs) {
  CHECK(eHandle == 98);
  got.tag = (int)eState, args_given = eStateArgs != NULL;
  if (eStateArgs) args = *eStateArgs;
  return 0;
}
int took_prof_init(int table, uintptr_t* context, uint64_t commId, int* eActivationMask, char* commName, int nNodes, int nranks, int rank, uintptr_t logfn) {
  got.table = table;
  CHECK(context && eActivationMask);
  if (table < 4) CHECK(!commId && !commName && !nNodes && !nranks && !rank && !logfn);
  if (table >= 4) CHECK(commId == 0x77 && !strcmp(commName, "world") && nNodes == 2 && nranks == 16 && rank == 9);
  return 0;
}

/* ---- the checks ---- */
static void reset(void) {
  memset(&got, 0, sizeof got);
  got.deadline_ms = 5000;
}

static void logger(ncclDebugLogLevel level, unsigned long flags, const char* file, int line, const char* fmt, ...) {
  (void)level, (void)flags, (void)file, (void)line, (void)fmt;
}

static void connections(void) {
  void* comm = P(1);
  reset(), got.until = 3; /* three times pending */
  CHECK(ncclNetPlugin_v4.connect(5, P(50), &comm) == 0 && comm == P(93) && got.calls == 4 && got.ctx == 4 && got.kind == 0);
  reset(), got.until = 2;
  CHECK(ncclNetPlugin_v2.accept(P(51), &comm) == 0 && comm == P(94) && got.calls == 3 && got.kind == 1);
  reset(), got.until = 1 << 30, got.deadline_ms = 30, comm = P(1);
  CHECK(ncclNetPlugin_v3.connect(5, P(50), &comm) == TIMED_OUT && comm == NULL && got.table == 3);
  reset(), got.until = 1 << 30, got.deadline_ms = 30, comm = P(1);
  CHECK(ncclNetPlugin_v3.accept(P(51), &comm) == TIMED_OUT && comm == NULL);
  reset(), got.until = 1; /* from v5 on a pending connection is no error, and nobody waits */
  CHECK(ncclNetPlugin_v6.connect(5, P(50), &comm) == 0 && comm == NULL && got.calls == 1 && got.ctx == 6);

  ncclNetDeviceHandle_v10_t* dev = P(0xdead);
  ncclNetCommConfig_v10_t config = {42};
  reset();
  CHECK(ncclNetPlugin_v10.connect(5, &config, P(50), &comm, &dev) == 0 && got.config == 42 && got.ctx == 10 && dev == NULL);
  reset(), dev = P(0xdead);
  CHECK(ncclNetPlugin_v11.connect(P(0x1000), 5, P(50), &comm, &dev) == 0 && got.config == -100 && got.ctx == 0x1000 && dev == NULL);
  reset(), dev = P(0xdead);
  CHECK(ncclNetPlugin_v8.accept(P(51), &comm, &dev) == 0 && dev == NULL && comm == P(94));
  reset();
  CHECK(ncclNetPlugin_v9.listen(5, P(50), &comm) == 0 && got.ctx == 9 && comm == P(51));
  reset();
  CHECK(ncclNetPlugin_v12.listen(P(0x1000), 5, P(50), &comm) == 0 && got.ctx == 0x1000);

  void* ctx = NULL;
  ncclNetCommConfig_v11_t config11 = {43};
  reset();
  CHECK(ncclNetPlugin_v2.init(logger) == 0 && got.table == 2 && got.config == -100 && got.log == (uintptr_t)logger && !got.prof);
  CHECK(ncclNetPlugin_v10.init(logger, (ncclProfilerCallback_t)(uintptr_t)0x99) == 0 && got.table == 10 && got.prof == 0x99);
  CHECK(ncclNetPlugin_v11.init(&ctx, 7, &config11, logger, NULL) == 0 && got.table == 11 && got.config == 43);
}

static void messages(void) {
  void* request = P(0xdead);
  reset();
  CHECK(ncclNetPlugin_v2.regMr(P(1), P(2), -1, NCCL_PTR_HOST, &request) == MISUSE && got.calls == 0);
  CHECK(ncclNetPlugin_v3.isend(P(1), P(2), -1, P(3), &request) == MISUSE && got.calls == 0);
  CHECK(ncclNetPlugin_v3.irecv(P(1), P(2), -1, P(3), &request) == MISUSE && got.calls == 0);
  CHECK(got.misuse == 3);
  CHECK(ncclNetPlugin_v2.regMr(P(1), P(2), 0x7fffffff, NCCL_PTR_HOST, &request) == 0 && got.size == 0x7fffffff && request == P(95));

  reset(), got.tag = 9;
  CHECK(ncclNetPlugin_v4.isend(P(1), P(2), 3, P(4), &request) == 0 && got.comm == 1 && got.data[0] == P(2) && got.size == 3 && got.tag == 0 && got.mhandles[0] == P(4) && !got.phandle);
  reset(), got.tags[0] = 9, request = P(1);
  CHECK(ncclNetPlugin_v4.irecv(P(1), P(2), 3, P(4), &request) == 0 && got.n == 1 && got.data[0] == P(2) && got.sizes[0] == 3 && got.tags[0] == 0 && got.mhandles[0] == P(4));
  CHECK(got.request == NULL && request == P(91) && !got.phandles);

  void *data[8], *mhandles[8], *phandles[8];
  int sizes[9] = {0}, tags[8];
  size_t wide[8];
  for (int i = 0; i < 8; i++) data[i] = P(100 + i), sizes[i] = 200 + i, wide[i] = (size_t)1 << (30 + i), tags[i] = 300 + i, mhandles[i] = P(400 + i), phandles[i] = P(500 + i);
  for (int n = 1; n <= 8; n++) {
    reset(), request = P(1);
    CHECK(ncclNetPlugin_v8.irecv(P(1), n, data, sizes, tags, mhandles, &request) == 0 && got.n == n && got.request == NULL);
    for (int i = 0; i < n; i++) CHECK(got.data[i] == data[i] && got.sizes[i] == (size_t)sizes[i] && got.tags[i] == tags[i] && got.mhandles[i] == mhandles[i]);
  }
  reset();
  CHECK(ncclNetPlugin_v8.irecv(P(1), 0, data, sizes, tags, mhandles, &request) == MISUSE);
  CHECK(ncclNetPlugin_v8.irecv(P(1), 9, data, sizes, tags, mhandles, &request) == MISUSE);
  sizes[1] = -1;
  CHECK(ncclNetPlugin_v8.irecv(P(1), 2, data, sizes, tags, mhandles, &request) == MISUSE);
  CHECK(got.calls == 0 && got.misuse == 3);
  reset(), request = P(1); /* v9 knows optional completion: the mark passes */
  CHECK(ncclNetPlugin_v9.irecv(P(1), 2, data, wide, tags, mhandles, &request) == 0 && got.request == P(1) && got.sizes[1] == wide[1] && !got.phandles);
  reset();
  CHECK(ncclNetPlugin_v10.irecv(P(1), 2, data, wide, tags, mhandles, phandles, &request) == 0 && got.phandles == phandles);

  reset(), got.until = 70; /* longer than it spins */
  CHECK(ncclNetPlugin_v3.flush(P(1), P(2), 3, P(4)) == 0 && got.n == 1 && got.data[0] == P(2) && got.size == 3 && got.mhandles[0] == P(4) && got.kind == 2);
  reset(), got.until = -1; /* nothing to flush */
  CHECK(ncclNetPlugin_v3.flush(P(1), P(2), 3, P(4)) == 0);
  reset(), got.until = 1 << 30, got.deadline_ms = 20;
  CHECK(ncclNetPlugin_v2.flush(P(1), P(2), 3, P(4)) == TIMED_OUT && got.table == 2);
  reset(), request = NULL;
  CHECK(ncclNetPlugin_v4.iflush(P(1), P(2), 3, P(4), &request) == 0 && got.n == 1 && got.size == 3 && request == P(92));
}

static void properties(void) {
  char* path = P(0xdead);
  int types = -1;
  reset();
  CHECK(ncclNetPlugin_v2.pciPath(5, &path) == 0 && !strcmp(path, "/sys/5"));
  free(path); /* as NCCL does */
  reset(), got.tag = -1;
  CHECK(ncclNetPlugin_v2.pciPath(5, &path) == 0 && path == NULL);
  reset();
  CHECK(ncclNetPlugin_v2.ptrSupport(5, &types) == 0 && types == (NCCL_PTR_HOST | NCCL_PTR_CUDA));
  ncclNetProperties_v4_t p4;
  memset(&p4, 0xee, sizeof p4);
  CHECK(ncclNetPlugin_v4.getProperties(5, &p4) == 0 && !strcmp(p4.name, "eth5") && !strcmp(p4.pciPath, "/sys/5") && p4.guid == 0x55);
  CHECK(p4.ptrSupport == (NCCL_PTR_HOST | NCCL_PTR_CUDA) && p4.speed == 25000 && p4.port == 2 && p4.maxComms == 100);
  ncclNetProperties_v6_t p6;
  memset(&p6, 0xee, sizeof p6);
  CHECK(ncclNetPlugin_v6.getProperties(5, &p6) == 0 && p6.ptrSupport == (NCCL_PTR_HOST | NCCL_PTR_CUDA | NCCL_PTR_DMABUF) && p6.latency == 1.5f && p6.maxRecvs == 8);
  ncclNetProperties_v8_t p8;
  memset(&p8, 0xee, sizeof p8);
  CHECK(ncclNetPlugin_v8.getProperties(5, &p8) == 0 && p8.regIsGlobal == 1 && p8.netDeviceType == NCCL_NET_DEVICE_HOST && p8.netDeviceVersion == 7 && p8.maxRecvs == 8);
  ncclNetProperties_v11_t p11;
  memset(&p11, 0xee, sizeof p11);
  CHECK(ncclNetPlugin_v11.getProperties(5, &p11) == 0 && p11.forceFlush == 1 && p11.vProps.ndevs == 4 && p11.maxMultiRequestSize == 3);
  for (int i = 0; i < 4; i++) CHECK(p11.vProps.devs[i] == 10 + i);
  CHECK(p11.maxP2pBytes == 1 << 30 && p11.maxCollBytes == 1 << 29);
  ncclNetProperties_v12_t p12;
  memset(&p12, 0xee, sizeof p12);
  CHECK(ncclNetPlugin_v12.getProperties(5, &p12) == 0 && p12.vProps.ndevs == 8 && p12.vProps.devs[7] == 17 && p12.railId == 4 && p12.planeId == 6);
}

static void collectives(void) {
  ncclNetSGE_v8_t parts[65];
  memset(parts, 0xee, sizeof parts);
  for (int i = 0; i < 65; i++) parts[i].mhandle = P(i), parts[i].address = P(1000 + i), parts[i].size = 0xfffffff0u + (unsigned)i % 8;
  void* request = NULL;
  reset();
  CHECK(ncclCollNetPlugin_v8.iallgather(P(60), P(61), 64, parts, 62, 63, 64, P(65), &request) == 0 && got.n == 64 && request == P(96));
  for (int i = 0; i < 64; i++) CHECK(got.parts[i].mhandle == parts[i].mhandle && got.parts[i].address == parts[i].address && got.parts[i].size == parts[i].size);
  CHECK(ncclCollNetPlugin_v8.iallgather(P(60), P(61), 65, parts, 62, 63, 64, P(65), &request) == MISUSE);
  CHECK(ncclCollNetPlugin_v8.iallgather(P(60), P(61), 0, parts, 62, 63, 64, P(65), &request) == MISUSE);
  reset(), got.until = 3;
  CHECK(ncclCollNetPlugin_v3.flush(P(60), P(61), 62, P(63)) == 0 && got.kind == 3);
  CHECK(ncclCollNetPlugin_v3.iallreduce(P(60), P(61), P(62), -1, ncclFloat32, ncclSum, P(63), P(64), &request) == MISUSE);
}

static void descriptors(void) {
  void* event = NULL;
  ncclProfilerEventDescr_v1_t d1;
  memset(&d1, 0xee, sizeof d1);
  d1.type = ncclProfileColl, d1.parentObj = P(71), d1.rank = 3;
  d1.coll.seqNumber = 4, d1.coll.func = ncclFuncAllReduce, d1.coll.sendBuff = P(72), d1.coll.recvBuff = P(73), d1.coll.count = 5, d1.coll.root = 6;
  d1.coll.datatype = ncclFloat32, d1.coll.nMaxChannels = 7, d1.coll.nWarps = 8, d1.coll.algo = 1, d1.coll.proto = 2;
  CHECK(ncclProfiler_v1.startEvent(P(70), &event, &d1) == 0 && event == P(98));
  CHECK(descr.type == ncclProfileColl && descr.parentObj == P(71) && descr.rank == 3 && descr.coll.seqNumber == 4 && !strcmp(descr.coll.func, "AllReduce"));
  CHECK(descr.coll.sendBuff == P(72) && descr.coll.recvBuff == P(73) && descr.coll.count == 5 && descr.coll.root == 6 && !strcmp(descr.coll.datatype, "ncclFloat32"));
  CHECK(descr.coll.nChannels == 7 && descr.coll.nWarps == 8 && !strcmp(descr.coll.algo, "RING") && !strcmp(descr.coll.proto, "SIMPLE") && !descr.coll.parentGroup);
  d1.coll.func = 200, d1.coll.datatype = 201, d1.coll.algo = 202, d1.coll.proto = 203;
  CHECK(ncclProfiler_v1.startEvent(P(70), &event, &d1) == 0 && !strcmp(descr.coll.func, "Unknown") && !strcmp(descr.coll.proto, "Unknown"));
  d1.type = ncclProfileProxyStep, d1.proxyStep.step = 12;
  CHECK(ncclProfiler_v1.startEvent(P(70), &event, &d1) == 0 && descr.proxyStep.step == 12);
  CHECK(!memcmp((char*)&descr + offsetof(ncclProfilerEventDescr_cur_t, proxyStep) + sizeof descr.proxyStep, (char*)&zero, 64)); /* nothing of the rest was read */
  d1.type = ncclProfileGroup; /* has no member; nor has what v1 does not know */
  CHECK(ncclProfiler_v1.startEvent(P(70), &event, &d1) == 0 && !memcmp(&descr.coll, &zero.coll, sizeof descr.coll));
  d1.type = ncclProfileKernelCh;
  CHECK(ncclProfiler_v1.startEvent(P(70), &event, &d1) == 0 && descr.type == ncclProfileKernelCh && !memcmp(&descr.coll, &zero.coll, sizeof descr.coll));

  ncclProfilerEventDescr_v4_t d4;
  memset(&d4, 0xee, sizeof d4);
  d4.type = ncclProfileP2p, d4.p2p.func = "Send", d4.p2p.buff = P(74), d4.p2p.datatype = "ncclInt8", d4.p2p.count = 9, d4.p2p.peer = 2; /* nChannels is left unset, as hosts do */
  CHECK(ncclProfiler_v4.startEvent(P(70), &event, &d4) == 0 && !strcmp(descr.p2p.func, "Send") && descr.p2p.peer == 2 && descr.p2p.nChannels == 0);
  ncclProfilerEventDescr_v5_t d5;
  memset(&d5, 0xee, sizeof d5);
  d5.type = ncclProfileGroupApi, d5.groupApi.graphCaptured = true, d5.groupApi.groupDepth = 2;
  CHECK(ncclProfiler_v5.startEvent(P(70), &event, &d5) == 0 && descr.groupApi.graphCaptured && descr.groupApi.groupDepth == 2);

  ncclProfilerEventStateArgs_v1_t a1;
  memset(&a1, 0xee, sizeof a1);
  a1.proxyCtrl.appendedProxyOps = 11;
  CHECK(ncclProfiler_v1.recordEventState(P(98), ncclProfilerProxyCtrlAppendEnd, &a1) == 0 && got.tag == ncclProfilerProxyCtrlAppendEnd && args.proxyCtrl.appendedProxyOps == 11);
  CHECK(said_steps == 0);
  a1.proxyOp.transSize = 12, a1.proxyOp.steps = 5;
  CHECK(ncclProfiler_v1.recordEventState(P(98), ncclProfilerProxyOpSendDone, &a1) == 0 && args_given && args.proxyStep.transSize == 12 && said_steps == 5);
  CHECK(ncclProfiler_v1.recordEventState(P(98), ncclProfilerProxyStepSendWait, &a1) == 0 && args_given && !memcmp(&args, &zero, sizeof args) && said_steps == 0);
  CHECK(ncclProfiler_v1.recordEventState(P(98), ncclProfilerProxyOpSendDone, NULL) == 0 && !args_given);
  ncclProfilerEventStateArgs_v4_t a4 = {.proxyStep = {13}};
  CHECK(ncclProfiler_v4.recordEventState(P(98), ncclProfilerProxyStepSendWait, &a4) == 0 && args.proxyStep.transSize == 13);

  void* context = NULL;
  int mask = 0;
  CHECK(ncclProfiler_v1.init(&context, &mask) == 0 && got.table == 1);
  CHECK(ncclProfiler_v4.init(&context, &mask, "world", 0x77, 2, 16, 9, logger) == 0 && got.table == 4);
  CHECK(ncclProfiler_v6.init(&context, 0x77, &mask, "world", 2, 16, 9, logger) == 0 && got.table == 6);
}

static void forked(void) {
  void* out = NULL;
  int n = 0;
  reset(), got.forked = 2;
  CHECK(ncclNetPlugin_v4.connect(5, P(50), &out) == 2 && ncclNetPlugin_v12.listen(NULL, 5, P(50), &out) == 2 && ncclNetPlugin_v2.pciPath(5, (char**)&out) == 2);
  CHECK(ncclNetPlugin_v8.regMr(P(1), P(2), 3, NCCL_PTR_HOST, &out) == 2 && ncclNetPlugin_v2.ptrSupport(5, &n) == 2);
  CHECK(got.calls == 0 && !got.heard);
  CHECK(ncclNetPlugin_v8.init(logger) == 2 && got.heard == (uintptr_t)logger); /* why not is for the host's log */
  CHECK(got.calls == 0);
}

int main(void) {
  connections(), messages(), properties(), collectives(), descriptors(), forked();
  if (!failures) printf("ok\n");
  return failures != 0;
}
