/* The state machine of a queue pair, and the order in which objects may go. */
#include "conform.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static int to(struct side* s, struct ibv_qp_attr a, int mask) { return ibv_modify_qp(s->qp, &a, mask | IBV_QP_STATE); }

static void illegal(void) {
  struct side s;
  struct address self;
  struct options o = {.stay_init = 1};
  struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE}, *bad = NULL;
  const int init = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  const int rtr = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
    IBV_QP_MIN_RNR_TIMER;
  begin("illegal transitions");
  if (open_side(&s, 0, &o)) { ok(0, "a queue pair"); return; }
  self_address(&s, &self);
  ok(to(&s, (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS}, 0) != 0, "RESET to RTS");
  ok(to(&s, (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR}, 0) != 0, "RESET to RTR");
  ok(to(&s, (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1}, IBV_QP_PORT) == EINVAL,
    "INIT without all that it needs");
  ok(to(&s, (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 99}, init) == EINVAL,
    "INIT on a port that is not there");
  ok(post_receive(&s, 1, 0, 8) != 0, "post_recv in RESET");
  ok(!connect_side(&s, &self, &o), "INIT");
  ok(!post_receive(&s, 1, 0, 8), "post_recv in INIT");
  ok(ibv_post_send(s.qp, &wr, &bad) == EINVAL, "post_send in INIT");
  ok(bad == &wr, "post_send in INIT names the request");
  struct ibv_qp_attr a =
    {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = self.qpn, .max_dest_rd_atomic = 1,
    .min_rnr_timer = 12,
      .ah_attr = {.is_global = 1, .port_num = 1,
        .grh = {.dgid = self.gid, .sgid_index = (uint8_t)s.gid_index, .hop_limit = 64}}};
  ok(to(&s, a, rtr & ~IBV_QP_DEST_QPN) == EINVAL, "RTR without a destination");
  a.ah_attr.grh.sgid_index = 200;
  int rc = to(&s, a, rtr);
  ok(rc == ENODATA || rc == EINVAL, "RTR with a GID index that is not there (%d)", rc);
  a.ah_attr.grh.sgid_index = (uint8_t)s.gid_index;
  static const uint8_t nowhere[4] = {192, 0, 2, 77};
  memcpy(a.ah_attr.grh.dgid.raw + 12, nowhere, 4);
  rc = to(&s, a, rtr);
  ok(rc == ETIMEDOUT || rc == EHOSTUNREACH || rc == ENETUNREACH, "RTR to an address that cannot be reached (%d)", rc);
  struct ibv_qp_attr now;
  struct ibv_qp_init_attr i;
  ok(!ibv_query_qp(s.qp, &now, IBV_QP_STATE, &i) && now.qp_state == IBV_QPS_INIT, "what failed changed nothing");
  begin("what is in use cannot go");
  ok(ibv_destroy_cq(s.scq) == EBUSY, "a completion queue");
  ok(ibv_dealloc_pd(s.pd) == EBUSY, "a protection domain");
  close_side(&s);
}

/* A program may free memory first and deregister it then; what it has mapped there since stays as it is. */
static void freed(void) {
  enum { LEN = 1 << 16 };
  struct side s;
  begin("memory goes before its region");
  if (open_side(&s, 0, &(struct options){0})) { ok(0, "a queue pair"); return; }
  for (int there = 0; there < 3; there++) { /* nothing, what cannot be read, and other data */
    static const char* const name[] = {"nothing is there", "nothing may be read there", "other memory is there"};
    uint8_t* mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr* mr = ibv_reg_mr(s.pd, mem, LEN, IBV_ACCESS_LOCAL_WRITE);
    int good = mr && !munmap(mem, LEN);
    int protection = there == 1 ? PROT_NONE : PROT_READ | PROT_WRITE;
    if (there) good &= mmap(mem, LEN, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == mem;
    if (there == 2) pattern(mem, LEN, 7);
    good &= mr && !ibv_dereg_mr(mr);
    if (there == 2) good &= is_pattern(mem, LEN, 7);
    ok(good && !munmap(mem, LEN), "%s", name[there]);
  }
  close_side(&s);
}

static void flushing(void) {
  struct pair p;
  struct address a, b;
  struct ibv_wc wc = {0};
  struct options o = {0};
  begin("ERR");
  if (pair(&p, &o)) return;
  self_address(&p.a, &a);
  self_address(&p.b, &b);
  for (uint64_t i = 0; i < 3; i++) post_receive(&p.a, 30 + i, 0, 8);
  ok(!to(&p.a, (struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, 0), "RTS to ERR");
  int good = 1;
  for (uint64_t i = 0; i < 3; i++)
    good &= poll_one(p.a.rcq, &wc, 2000) == 1 && wc.wr_id == 30 + i && wc.status == IBV_WC_WR_FLUSH_ERR;
  ok(good, "receives are flushed in order");
  ok(!post(&p.a, IBV_WR_RDMA_WRITE, 33, 0, 8, &b, 0, 0) && poll_one(p.a.scq, &wc, 2000) == 1 &&
    wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 33, "so is what is sent");
  begin("from ERR back to RTS");
  ok(!to(&p.a, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, 0), "ERR to RESET");
  ok(!to(&p.b, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, 0), "RTS to RESET");
  ok(!connect_side(&p.a, &b, &o) && !connect_side(&p.b, &a, &o), "both ends again to RTS");
  pattern(p.a.mem, 100, 9);
  ok(!post(&p.a, IBV_WR_RDMA_WRITE, 34, 0, 100, &b, 0, IBV_SEND_SIGNALED) && poll_one(p.a.scq, &wc, 5000) == 1 &&
    !wc.status && is_pattern(p.b.mem, 100, 9), "and data moves");
  unpair(&p);
}

void test_states(void) {
  illegal();
  freed();
  flushing();
}
