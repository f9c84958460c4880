/* What goes wrong, with which status, and what it does to both ends. */
#include "conform.h"

#include <string.h>

static int state(struct side* s) {
  struct ibv_qp_attr a;
  struct ibv_qp_init_attr init;
  return ibv_query_qp(s->qp, &a, IBV_QP_STATE, &init) ? -1 : (int)a.qp_state;
}

/* Both ends stop within a while: the far one hears of it from its device. */
static int stops(struct side* s) {
  for (uint64_t end = now_ms() + 2000; now_ms() < end;) {
    if (state(s) == IBV_QPS_ERR) return 1;
  }
  return 0;
}

/* A request that the far end refuses, with a receive waiting there and another request behind it. */
static void refused(const char* name, int status, int other, int receive, const struct options* o,
  void (*spoil)(struct pair*, struct address*), enum ibv_wr_opcode opcode, uint32_t len) {
  struct pair p;
  struct address b;
  struct ibv_wc wc = {0};
  begin(name);
  if (pair(&p, o)) return;
  self_address(&p.b, &b);
  struct address good = b;
  post_receive(&p.b, 90, 0, 64);
  if (spoil) spoil(&p, &b);
  int rc = post(&p.a, opcode, 1, 0, len, &b, 0, 0); /* unsignaled: errors complete all the same */
  int late = post(&p.a, IBV_WR_RDMA_WRITE, 2, 0, 8, &good, 0, 0);
  int got = poll_one(p.a.scq, &wc, 10000);
  ok(!rc && got == 1 && wc.wr_id == 1 &&
    ((int)wc.status == status || (int)wc.status == other), "%s expected, status %d",
    ibv_wc_status_str((enum ibv_wc_status)status), (int)wc.status);
  ok(!late && poll_one(p.a.scq, &wc, 2000) == 1 && wc.wr_id == 2 &&
    wc.status == IBV_WC_WR_FLUSH_ERR, "the next request is flushed (status %d)", (int)wc.status);
  ok(stops(&p.a), "the sender's queue pair is in ERR");
  ok(stops(&p.b), "the other end's queue pair is in ERR");
  ok(poll_one(p.b.rcq, &wc, 2000) == 1 && wc.wr_id == 90 &&
    (int)wc.status == receive, "its receive ends: %s expected, status %d",
    ibv_wc_status_str((enum ibv_wc_status)receive), (int)wc.status);
  ok(!post(&p.a, IBV_WR_RDMA_WRITE, 3, 0, 8, &good, 0, 0) && poll_one(p.a.scq, &wc, 2000) == 1 && wc.wr_id == 3 &&
    wc.status == IBV_WC_WR_FLUSH_ERR, "what is posted later is flushed");
  ok(!post_receive(&p.b, 91, 0, 8) && poll_one(p.b.rcq, &wc, 2000) == 1 && wc.wr_id == 91 &&
    wc.status == IBV_WC_WR_FLUSH_ERR, "so is a receive");
  ok(p.b.mem[0] == 0, "nothing was written");
  unpair(&p);
}

static void bad_key(struct pair* p, struct address* b) { b->rkey ^= 0x5500; }
static void out_of_bounds(struct pair* p, struct address* b) { b->mem += SIZE - 4; }
static void mark(struct pair* p, struct address* b) { memset(p->a.mem, 1, 128); }

static void local_key(void) {
  struct pair p;
  struct address b;
  struct ibv_wc wc = {0};
  begin("bad local key");
  if (pair(&p, &(struct options){0})) return;
  self_address(&p.b, &b);
  p.a.mr->lkey ^= 0x5500;
  post(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 8, &b, 0, IBV_SEND_SIGNALED);
  p.a.mr->lkey ^= 0x5500;
  ok(poll_one(p.a.scq, &wc, 2000) == 1 && wc.status == IBV_WC_LOC_PROT_ERR, "LOC_PROT_ERR (status %d)", (int)wc.status);
  ok(stops(&p.a), "the queue pair is in ERR");
  unpair(&p);
}

static void no_permission(void) {
  struct pair p;
  struct address b;
  struct ibv_wc wc = {0};
  begin("region without remote write");
  if (pair(&p, &(struct options){0})) return;
  self_address(&p.b, &b);
  struct ibv_mr* local = ibv_reg_mr(p.b.pd, p.b.mem, 4096, IBV_ACCESS_LOCAL_WRITE);
  b.rkey = local->rkey;
  post(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 8, &b, 0, IBV_SEND_SIGNALED);
  ok(poll_one(p.a.scq, &wc, 2000) == 1 &&
    wc.status == IBV_WC_REM_ACCESS_ERR, "REM_ACCESS_ERR (status %d)", (int)wc.status);
  ibv_dereg_mr(local);
  unpair(&p);
  begin("region of another domain");
  if (pair(&p, &(struct options){0})) return;
  self_address(&p.b, &b);
  struct ibv_pd* pd = ibv_alloc_pd(p.b.ctx);
  struct ibv_mr* other = ibv_reg_mr(pd, p.b.mem, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  b.rkey = other->rkey;
  post(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 8, &b, 0, IBV_SEND_SIGNALED);
  ok(poll_one(p.a.scq, &wc, 2000) == 1 &&
    wc.status == IBV_WC_REM_ACCESS_ERR, "REM_ACCESS_ERR (status %d)", (int)wc.status);
  ibv_dereg_mr(other);
  ibv_dealloc_pd(pd);
  unpair(&p);
  begin("remote write without local write");
  if (pair(&p, &(struct options){0})) return;
  ok(!ibv_reg_mr(p.a.pd, p.a.mem, 4096, IBV_ACCESS_REMOTE_WRITE), "is refused");
  unpair(&p);
}

static void not_ready(void) {
  struct pair p;
  struct address b;
  struct ibv_wc wc = {0};
  begin("no receive, one retry");
  if (pair(&p, &(struct options){.rnr_retry = 1})) return;
  self_address(&p.b, &b);
  post(&p.a, IBV_WR_SEND, 1, 0, 8, &b, 0, IBV_SEND_SIGNALED);
  ok(poll_one(p.a.scq, &wc, 5000) == 1 &&
    wc.status == IBV_WC_RNR_RETRY_EXC_ERR, "RNR_RETRY_EXC_ERR (status %d)", (int)wc.status);
  ok(state(&p.b) == IBV_QPS_RTS, "the other end stays RTS");
  unpair(&p);
  begin("no receive, retries without end");
  if (pair(&p, &(struct options){.rnr_retry = 7})) return;
  self_address(&p.b, &b);
  pattern(p.a.mem, 600, 8);
  post(&p.a, IBV_WR_SEND, 1, 0, 600, &b, 0, IBV_SEND_SIGNALED);
  post(&p.a, IBV_WR_RDMA_WRITE, 2, 0, 8, &b, 4096, IBV_SEND_SIGNALED);
  ok(quiet(p.a.scq, 50), "waits, and so does what is behind it");
  post_receive(&p.b, 5, 1024, 1000);
  ok(poll_one(p.b.rcq, &wc, 5000) == 1 && !wc.status && wc.wr_id == 5 && wc.byte_len == 600 &&
    is_pattern(p.b.mem + 1024, 600, 8), "arrives once there is one");
  ok(poll_one(p.a.scq, &wc, 5000) == 1 && !wc.status && wc.wr_id == 1, "the sender's completion");
  ok(poll_one(p.a.scq, &wc, 5000) == 1 && !wc.status && wc.wr_id == 2, "and the next one's");
  unpair(&p);
}

static void nobody(void) {
  struct pair p;
  struct address b;
  struct ibv_wc wc = {0};
  begin("nobody there");
  if (pair(&p, &(struct options){.timeout = 14, .retry = 3})) return;
  self_address(&p.b, &b);
  ok(!ibv_destroy_qp(p.b.qp), "the other end is destroyed");
  p.b.qp = NULL;
  uint64_t before = now_ms();
  post(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 8, &b, 0, IBV_SEND_SIGNALED);
  ok(poll_one(p.a.scq, &wc, 10000) == 1 &&
    wc.status == IBV_WC_RETRY_EXC_ERR, "RETRY_EXC_ERR (status %d)", (int)wc.status);
  ok(now_ms() - before >= 200, "after the retries that were asked for (%d ms)", (int)(now_ms() - before));
  unpair(&p);
}

void test_errors(void) {
  refused("bad remote key", IBV_WC_REM_ACCESS_ERR, -1, IBV_WC_WR_FLUSH_ERR, &(struct options){0}, bad_key,
    IBV_WR_RDMA_WRITE, 8);
  refused("write across the end", IBV_WC_REM_ACCESS_ERR, -1, IBV_WC_WR_FLUSH_ERR, &(struct options){0}, out_of_bounds,
    IBV_WR_RDMA_WRITE, 8);
  refused("read with a bad key", IBV_WC_REM_ACCESS_ERR, -1, IBV_WC_WR_FLUSH_ERR, &(struct options){0}, bad_key,
    IBV_WR_RDMA_READ, 8);
  refused("queue pair without remote write", IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR,
    &(struct options){.access = IBV_ACCESS_REMOTE_READ}, mark, IBV_WR_RDMA_WRITE, 8);
  refused("send longer than its receive", IBV_WC_REM_INV_REQ_ERR, -1, IBV_WC_LOC_LEN_ERR, &(struct options){0}, NULL,
    IBV_WR_SEND, 128);
  local_key();
  no_permission();
  not_ready();
  nobody();
}
