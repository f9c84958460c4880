/* floor.c: a plugin that does nothing but the verbs calls of a message, to show what the device itself costs: a
 * receive posted again and a CTS of 64 bytes per irecv, a WRITE with immediate per isend, a poll per test. No
 * checks, one process, one connection, at most WINDOW messages at a time, in order. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "both.h"
#include "verbs/verbs.h"

static struct ibv_qp* (*create_qp)(struct ibv_pd*, struct ibv_qp_init_attr*);
static int (*modify_qp)(struct ibv_qp*, struct ibv_qp_attr*, int);
static struct ibv_mr* (*reg_mr)(struct ibv_pd*, void*, size_t, int);

struct end {
  struct ibv_qp* qp;
  struct ibv_cq* cq;
  int64_t posted, done;
  char* at[WINDOW];
};
static struct ibv_pd* pd;
static struct ibv_mr *memory, *ring;
static struct end tx, rx;
static char cts[64 * WINDOW], line[64];
enum { ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, REQUEST_SEND = 1, REQUEST_RECV = 2 };

static void* symbol(void* lib, const char* name) {
  void* s = dlsym(lib, name);
  if (!s) die("libibverbs has no %s", name);
  return s;
}

static void ready(struct end* e, struct end* peer, union ibv_gid* gid) {
  struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
  must(modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
  a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096, .dest_qp_num = peer->qp->qp_num,
    .min_rnr_timer = 12};
  a.ah_attr.is_global = 1;
  a.ah_attr.grh.dgid = *gid;
  a.ah_attr.grh.sgid_index = 1;
  a.ah_attr.grh.hop_limit = 64;
  a.ah_attr.port_num = 1;
  must(modify_qp(e->qp, &a,
    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
    IBV_QP_MIN_RNR_TIMER), "RTR");
  a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
  must(modify_qp(e->qp, &a,
    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
    "RTS");
}

static ncclResult_t init(void** ctx, uint64_t id, ncclNetCommConfig_v12_t* config, ncclDebugLogger_t log,
  ncclProfilerCallback_t profiler) {
  void* lib = dlopen("libibverbs.so.1", RTLD_NOW);
  if (!lib) die("%s", dlerror());
  struct ibv_device** (*list)(int*) = symbol(lib, "ibv_get_device_list");
  struct ibv_context* (*open)(struct ibv_device*) = symbol(lib, "ibv_open_device");
  struct ibv_pd* (*alloc_pd)(struct ibv_context*) = symbol(lib, "ibv_alloc_pd");
  struct ibv_cq* (*create_cq)(struct ibv_context*, int, void*, struct ibv_comp_channel*, int) =
    symbol(lib, "ibv_create_cq");
  int (*query_gid)(struct ibv_context*, uint8_t, int, union ibv_gid*) = symbol(lib, "ibv_query_gid");
  create_qp = symbol(lib, "ibv_create_qp");
  modify_qp = symbol(lib, "ibv_modify_qp");
  reg_mr = symbol(lib, "ibv_reg_mr");
  int n = 0;
  struct ibv_device** devices = list(&n);
  struct ibv_context* dev = devices && n ? open(devices[0]) : NULL;
  union ibv_gid gid;
  if (!dev || !(pd = alloc_pd(dev)) || query_gid(dev, 1, 1, &gid)) die("no verbs device with a GID of index 1");
  if (!(ring = reg_mr(pd, cts, sizeof cts, ACCESS))) die("ibv_reg_mr");
  for (int i = 0; i < 2; i++) {
    struct end* e = i ? &rx : &tx;
    if (!(e->cq = create_cq(dev, 8 * WINDOW, NULL, NULL, 0))) die("ibv_create_cq");
    struct ibv_qp_init_attr a =
      {.send_cq = e->cq, .recv_cq = e->cq, .cap = {2 * WINDOW, 2 * WINDOW, 1, 1, 64}, .qp_type = IBV_QPT_RC};
    if (!(e->qp = create_qp(pd, &a))) die("ibv_create_qp");
  }
  ready(&tx, &rx, &gid);
  ready(&rx, &tx, &gid);
  *ctx = &tx;
  (void)id;
  (void)config;
  (void)log;
  (void)profiler;
  return ncclSuccess;
}

static ncclResult_t devices(int* n) {
  *n = 1;
  return ncclSuccess;
}

static ncclResult_t listen(void* ctx, int dev, void* handle, void** comm) {
  (void)ctx;
  (void)dev;
  (void)handle;
  *comm = &rx;
  return ncclSuccess;
}

static ncclResult_t connect(void* ctx, int dev, void* handle, void** comm, ncclNetDeviceHandle_v12_t** d) {
  (void)ctx;
  (void)dev;
  (void)handle;
  (void)d;
  *comm = &tx;
  return ncclSuccess;
}

static ncclResult_t accept(void* from, void** comm, ncclNetDeviceHandle_v12_t** d) {
  (void)d;
  *comm = from;
  return ncclSuccess;
}

static ncclResult_t register_mr(void* comm, void* data, size_t n, int type, void** mh) {
  if (!memory && !(memory = reg_mr(pd, data, n, ACCESS))) die("ibv_reg_mr");
  (void)comm;
  (void)type;
  *mh = memory;
  return ncclSuccess;
}

static void write_to(struct end* e, void* from, uint32_t n, uint32_t lkey, void* to, uint32_t rkey,
  enum ibv_wr_opcode op, unsigned flags) {
  struct ibv_sge sge = {(uint64_t)(uintptr_t)from, n, lkey};
  struct ibv_send_wr wr, *bad;
  wr.wr_id = 0;
  wr.next = NULL;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = op;
  wr.send_flags = flags | (n <= 64 ? IBV_SEND_INLINE : 0);
  wr.imm_data = n;
  wr.wr.rdma.remote_addr = (uint64_t)(uintptr_t)to;
  wr.wr.rdma.rkey = rkey;
  must(e->qp->context->ops.post_send(e->qp, &wr, &bad), "ibv_post_send");
}

static ncclResult_t irecv(void* comm, int n, void** data, size_t* sizes, int* tags, void** mhs, void** phs,
  void** request) {
  struct ibv_recv_wr wr = {.num_sge = 0}, *bad;
  must(rx.qp->context->ops.post_recv(rx.qp, &wr, &bad), "ibv_post_recv");
  rx.at[rx.posted % WINDOW] = data[0];
  write_to(&rx, line, 64, ring->lkey, cts + 64 * (rx.posted % WINDOW), ring->rkey, IBV_WR_RDMA_WRITE,
    rx.posted % WINDOW ? 0 : IBV_SEND_SIGNALED);
  *request = (void*)(uintptr_t)(4 * ++rx.posted + REQUEST_RECV);
  (void)comm;
  (void)n;
  (void)sizes;
  (void)tags;
  (void)mhs;
  (void)phs;
  return ncclSuccess;
}

static ncclResult_t isend(void* comm, void* data, size_t n, int tag, void* mh, void* ph, void** request) {
  *request = NULL;
  if (tx.posted == rx.posted) return ncclSuccess;
  write_to(&tx, data, (uint32_t)n, memory->lkey, rx.at[tx.posted % WINDOW], memory->rkey, IBV_WR_RDMA_WRITE_WITH_IMM,
    IBV_SEND_SIGNALED);
  *request = (void*)(uintptr_t)(4 * ++tx.posted + REQUEST_SEND);
  (void)comm;
  (void)tag;
  (void)mh;
  (void)ph;
  return ncclSuccess;
}

static ncclResult_t test(void* request, int* done, int* sizes) {
  struct end* e = ((uintptr_t)request & 3) == REQUEST_SEND ? &tx : &rx;
  const int64_t number = (int64_t)((uintptr_t)request / 4);
  struct ibv_wc wc[4];
  const int n = e->done < number ? e->qp->context->ops.poll_cq(e->cq, 4, wc) : 0;
  for (int i = 0; i < n; i++) {
    if (wc[i].status != IBV_WC_SUCCESS) die("completion with status %d", (int)wc[i].status);
    e->done += e == &tx || wc[i].opcode == IBV_WC_RECV_RDMA_WITH_IMM;
  }
  *done = e->done >= number;
  *sizes = (int)message_size;
  return ncclSuccess;
}

ncclNet_v12_t floor_net =
  {.name = "floor", .init = init, .devices = devices, .listen = listen, .connect = connect, .accept = accept,
                           .regMr = register_mr, .isend = isend, .irecv = irecv, .test = test};
