/* Test bookkeeping, and connections between two ends in one process. */
#include "conform.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int count, failed;
static const char* test = "";

void begin(const char* name) { test = name; }

void report(int good, const char* format, ...) {
  va_list args;
  va_start(args, format);
  printf("%sok %d - %s: ", good ? "" : "not ", ++count, test);
  vprintf(format, args);
  printf("\n");
  fflush(stdout);
  va_end(args);
  failed += !good;
}

void skip(const char* format, ...) {
  va_list args;
  va_start(args, format);
  printf("ok %d - %s # SKIP ", ++count, test);
  vprintf(format, args);
  printf("\n");
  va_end(args);
}

int failures(void) {
  printf("1..%d\n", count);
  return failed;
}

uint64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static struct end { char device[64]; int gid_index; union ibv_gid gid; } ends[2];

static int usable(const union ibv_gid* g) {
  static const union ibv_gid none;
  return memcmp(g, &none, sizeof none) && !(g->raw[0] == 0xfe && (g->raw[1] & 0xc0) == 0x80);
}

static int list_gids(struct end* out, int max) {
  int n = 0, count_devices = 0;
  struct ibv_device** list = ibv_get_device_list(&count_devices);
  for (int d = 0; list && d < count_devices; d++) {
    struct ibv_context* ctx = ibv_open_device(list[d]);
    struct ibv_port_attr port;
    if (!ctx) continue;
    if (!ibv_query_port(ctx, 1, &port) && port.state == IBV_PORT_ACTIVE) {
      for (int i = 0; i < port.gid_tbl_len && n < max; i++) {
        union ibv_gid g;
        if (ibv_query_gid(ctx, 1, i, &g) || !usable(&g)) continue;
        snprintf(out[n].device, sizeof out[n].device, "%s", ibv_get_device_name(list[d]));
        out[n].gid_index = i;
        out[n++].gid = g;
      }
    }
    ibv_close_device(ctx);
  }
  if (list) ibv_free_device_list(list);
  return n;
}

/* spec is "DEVICE:INDEX,DEVICE:INDEX" or NULL: two devices in one /24 or /64, else one device with itself. */
int find_ends(const char* spec) {
  struct end all[256];
  if (spec && sscanf(spec, "%63[^:]:%d,%63[^:]:%d", ends[0].device, &ends[0].gid_index, ends[1].device,
      &ends[1].gid_index) == 4)
    return 0;
  int n = list_gids(all, 256);
  for (int i = 0; i < n; i++) {
    for (int k = i + 1; k < n; k++) {
      int bytes = all[i].gid.raw[10] == 0xff ? 15 : 8;
      if (!strcmp(all[i].device, all[k].device) || memcmp(all[i].gid.raw, all[k].gid.raw, (size_t)bytes)) continue;
      ends[0] = all[i];
      ends[1] = all[k];
      return 0;
    }
  }
  if (n) ends[0] = ends[1] = all[0];
  return n ? 0 : -1;
}

int open_side(struct side* s, int end, const struct options* o) {
  int n = 0;
  memset(s, 0, sizeof *s);
  struct ibv_device** list = ibv_get_device_list(&n);
  for (int i = 0; list && i < n && !s->ctx; i++) {
    if (!strcmp(ibv_get_device_name(list[i]), ends[end].device)) s->ctx = ibv_open_device(list[i]);
  }
  if (list) ibv_free_device_list(list);
  struct ibv_port_attr port;
  s->port = 1;
  s->gid_index = ends[end].gid_index;
  if (!s->ctx || ibv_query_port(s->ctx, 1, &port) || ibv_query_gid(s->ctx, 1, s->gid_index, &s->gid)) return -1;
  s->mtu = port.active_mtu;
  void* mem = NULL;
  if (posix_memalign(&mem, 4096, SIZE)) return -1;
  s->mem = mem;
  memset(mem, 0, SIZE);
  s->pd = ibv_alloc_pd(s->ctx);
  int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  s->mr = s->pd ? ibv_reg_mr(s->pd, s->mem, SIZE, access) : NULL;
  if (o->channel) s->chan = ibv_create_comp_channel(s->ctx);
  s->scq = ibv_create_cq(s->ctx, o->cqe ? o->cqe : 256, s, s->chan, 0);
  s->rcq = ibv_create_cq(s->ctx, o->cqe ? o->cqe : 256, s, s->chan, 0);
  if (!s->mr || !s->scq || !s->rcq) return -1;
  struct ibv_qp_init_attr init = {.send_cq = s->scq, .recv_cq = s->rcq, .qp_type = IBV_QPT_RC, .sq_sig_all = o->sig_all,
      .cap = {.max_send_wr = (uint32_t)(o->send_wr ? o->send_wr : 64),
        .max_recv_wr = (uint32_t)(o->recv_wr ? o->recv_wr : 64),
              .max_send_sge = 4, .max_recv_sge = 4, .max_inline_data = (uint32_t)o->inline_data}};
  s->qp = ibv_create_qp(s->pd, &init);
  return s->qp ? 0 : -1;
}

void close_side(struct side* s) {
  if (s->qp) ok(!ibv_destroy_qp(s->qp), "destroy_qp");
  if (s->scq) ok(!ibv_destroy_cq(s->scq), "destroy_cq");
  if (s->rcq) ibv_destroy_cq(s->rcq);
  if (s->chan) ok(!ibv_destroy_comp_channel(s->chan), "destroy_comp_channel");
  if (s->mr) ok(!ibv_dereg_mr(s->mr), "dereg_mr");
  if (s->pd) ok(!ibv_dealloc_pd(s->pd), "dealloc_pd");
  if (s->ctx) ibv_close_device(s->ctx);
  free(s->mem);
}

void self_address(const struct side* s, struct address* out) {
  *out = (struct address){.gid = s->gid, .qpn = s->qp->qp_num, .rkey = s->mr->rkey, .mem = (uintptr_t)s->mem,
    .mtu = (int)s->mtu};
}

int connect_side(struct side* s, const struct address* peer, const struct options* o) {
  int all = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  struct ibv_qp_attr a =
    {.qp_state = IBV_QPS_INIT, .port_num = (uint8_t)s->port,
    .qp_access_flags = (unsigned)(o->access ? o->access & all : all)};
  int rc = ibv_modify_qp(s->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (rc || o->stay_init) return rc;
  enum ibv_mtu mtu = peer->mtu < (int)s->mtu ? (enum ibv_mtu)peer->mtu : s->mtu;
  if (o->path_mtu) mtu = (enum ibv_mtu)o->path_mtu;
  a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = mtu,
    .dest_qp_num = peer->qpn, .rq_psn = 7, .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
    .ah_attr = {.is_global = 1, .port_num = (uint8_t)s->port,
      .grh = {.dgid = peer->gid, .sgid_index = (uint8_t)s->gid_index, .hop_limit = 64}}};
  rc = ibv_modify_qp(s->qp, &a,
    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
    IBV_QP_MIN_RNR_TIMER);
  if (rc) return rc;
  a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = 7, .timeout = (uint8_t)(o->timeout ? o->timeout : 14),
      .retry_cnt = (uint8_t)(o->retry ? o->retry : 6), .rnr_retry = (uint8_t)(o->rnr_retry ? o->rnr_retry : 7),
        .max_rd_atomic = 1};
  return ibv_modify_qp(s->qp, &a,
    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

int pair(struct pair* p, const struct options* o) {
  struct address a, b;
  memset(p, 0, sizeof *p);
  int rc = open_side(&p->a, 0, o) || open_side(&p->b, 1, o);
  if (!rc) {
    self_address(&p->a, &a);
    self_address(&p->b, &b);
    rc = connect_side(&p->a, &b, o) || connect_side(&p->b, &a, o);
  }
  if (rc) ok(0, "a connection could not be made (errno %s)", strerror(errno));
  return rc;
}

void unpair(struct pair* p) {
  close_side(&p->a);
  close_side(&p->b);
}

int post(struct side* s, enum ibv_wr_opcode opcode, uint64_t id, size_t from, uint32_t len, const struct address* to,
  size_t at, unsigned flags) {
  struct ibv_sge g = {(uintptr_t)s->mem + from, len, s->mr->lkey};
  struct ibv_send_wr wr =
    {.wr_id = id, .sg_list = &g, .num_sge = len ? 1 : 0, .opcode = opcode, .send_flags = flags, .imm_data = 0x01020304},
    *bad;
  wr.wr.rdma.remote_addr = to->mem + at;
  wr.wr.rdma.rkey = to->rkey;
  return ibv_post_send(s->qp, &wr, &bad);
}

int post_receive(struct side* s, uint64_t id, size_t at, uint32_t len) {
  struct ibv_sge g = {(uintptr_t)s->mem + at, len, s->mr->lkey};
  struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &g, .num_sge = len ? 1 : 0}, *bad;
  return ibv_post_recv(s->qp, &wr, &bad);
}

int poll_one(struct ibv_cq* cq, struct ibv_wc* wc, int ms) {
  uint64_t end = now_ms() + (uint64_t)ms;
  memset(wc, 0, sizeof *wc);
  do {
    int n = ibv_poll_cq(cq, 1, wc);
    if (n) return n;
    usleep(20);
  } while (now_ms() < end);
  return 0;
}

int quiet(struct ibv_cq* cq, int ms) {
  struct ibv_wc wc = {0};
  return !poll_one(cq, &wc, ms);
}

void pattern(uint8_t* p, size_t n, unsigned seed) {
  for (size_t i = 0; i < n; i++) p[i] = (uint8_t)(i * 31 + (i >> 8) * 17 + seed);
}

int is_pattern(const uint8_t* p, size_t n, unsigned seed) {
  for (size_t i = 0; i < n; i++) {
    if (p[i] != (uint8_t)(i * 31 + (i >> 8) * 17 + seed)) return 0;
  }
  return 1;
}
