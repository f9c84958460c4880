/* What moves and in which order. */
#include "conform.h"

#include <arpa/inet.h>
#include <string.h>

static void writes(struct pair* p, const struct address* b) {
  static const uint32_t sizes[] = {1, 7, 8, 64, 65, 1024, 4095, 4096, 65537, SIZE};
  struct ibv_wc wc = {0};
  begin("RDMA WRITE");
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    uint32_t n = sizes[i];
    pattern(p->a.mem, n, (unsigned)i);
    memset(p->b.mem, 0xee, SIZE);
    int rc = post(&p->a, IBV_WR_RDMA_WRITE, 40 + i, 0, n, b, 0, IBV_SEND_SIGNALED);
    int got = poll_one(p->a.scq, &wc, 5000);
    ok(!rc && got == 1 && wc.status == IBV_WC_SUCCESS && wc.wr_id == 40 + i && wc.opcode == IBV_WC_RDMA_WRITE &&
      wc.qp_num == p->a.qp->qp_num,
       "%u bytes complete (%d, %d, status %d)", n, rc, got, (int)wc.status);
    ok(is_pattern(p->b.mem, n, (unsigned)i) && (n == SIZE || p->b.mem[n] == 0xee), "%u bytes arrive, and no more", n);
  }
  ok(!post(&p->a, IBV_WR_RDMA_WRITE, 9, 0, 0, b, 0, IBV_SEND_SIGNALED) && poll_one(p->a.scq, &wc, 5000) == 1 &&
    !wc.status, "0 bytes complete");
}

static void immediates(struct pair* p, const struct address* b) {
  struct ibv_wc wc = {0};
  begin("WRITE_WITH_IMM");
  static const uint32_t sizes[] = {0, 8, 5000};
  for (size_t i = 0; i < 3; i++) {
    uint32_t n = sizes[i];
    post_receive(&p->b, 70 + i, 0, 0);
    pattern(p->a.mem, n, 99);
    ok(!post(&p->a, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, n, b, 512, IBV_SEND_SIGNALED), "%u bytes post", n);
    int got = poll_one(p->b.rcq, &wc, 5000);
    ok(got == 1 && !wc.status && wc.wr_id == 70 + i && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.byte_len == n &&
           (wc.wc_flags & IBV_WC_WITH_IMM) && wc.imm_data == 0x01020304 && wc.qp_num == p->b.qp->qp_num,
       "%u bytes: the receive says length and immediate (status %d, len %u)", n, (int)wc.status, wc.byte_len);
    ok(is_pattern(p->b.mem + 512, n, 99), "%u bytes are there when it completes", n);
    ok(poll_one(p->a.scq, &wc, 5000) == 1 && !wc.status && wc.opcode == IBV_WC_RDMA_WRITE, "the sender's completion");
  }
}

static void sends(struct pair* p, const struct address* b) {
  struct ibv_wc wc = {0};
  begin("SEND");
  pattern(p->a.mem, 3000, 5);
  post_receive(&p->b, 80, 100, 4000);
  ok(!post(&p->a, IBV_WR_SEND_WITH_IMM, 2, 0, 3000, b, 0, IBV_SEND_SIGNALED), "posts");
  ok(poll_one(p->b.rcq, &wc, 5000) == 1 && !wc.status && wc.opcode == IBV_WC_RECV && wc.byte_len == 3000 &&
    wc.imm_data == 0x01020304 &&
         (wc.wc_flags & IBV_WC_WITH_IMM), "received with its length and immediate");
  ok(is_pattern(p->b.mem + 100, 3000, 5), "the bytes");
  ok(poll_one(p->a.scq, &wc, 5000) == 1 && !wc.status && wc.opcode == IBV_WC_SEND, "the sender's completion");
  begin("SEND into three buffers from two");
  struct ibv_sge to[3] =
    {{(uintptr_t)p->b.mem, 10, p->b.mr->lkey}, {(uintptr_t)p->b.mem + 64, 100, p->b.mr->lkey},
    {(uintptr_t)p->b.mem + 512, 900, p->b.mr->lkey}};
  struct ibv_sge from[2] = {{(uintptr_t)p->a.mem, 50, p->a.mr->lkey}, {(uintptr_t)p->a.mem + 50, 450, p->a.mr->lkey}};
  struct ibv_recv_wr rwr = {.wr_id = 81, .sg_list = to, .num_sge = 3}, *rbad;
  struct ibv_send_wr swr =
    {.wr_id = 3, .sg_list = from, .num_sge = 2, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *sbad;
  uint8_t whole[500];
  ok(!ibv_post_recv(p->b.qp, &rwr, &rbad) && !ibv_post_send(p->a.qp, &swr, &sbad) &&
    poll_one(p->b.rcq, &wc, 5000) == 1 && wc.byte_len == 500, "arrives");
  memcpy(whole, p->b.mem, 10);
  memcpy(whole + 10, p->b.mem + 64, 100);
  memcpy(whole + 110, p->b.mem + 512, 390);
  ok(is_pattern(whole, 500, 5), "cut where the buffers end");
  poll_one(p->a.scq, &wc, 5000);
}

static void inlines(struct pair* p, const struct address* b) {
  struct ibv_wc wc = {0};
  struct ibv_qp_attr a;
  struct ibv_qp_init_attr init = {0};
  begin("inline");
  ok(!ibv_query_qp(p->a.qp, &a, IBV_QP_CAP, &init) &&
    init.cap.max_inline_data >= 64, "create_qp grants what was asked (%u)", init.cap.max_inline_data);
  uint8_t stack[64];
  pattern(stack, 64, 3);
  struct ibv_sge g = {(uintptr_t)stack, 64, 0}; /* no key: it is copied */
  struct ibv_send_wr wr =
    {.wr_id = 4, .sg_list = &g, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
    .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE}, *bad;
  wr.wr.rdma.remote_addr = b->mem;
  wr.wr.rdma.rkey = b->rkey;
  int rc = ibv_post_send(p->a.qp, &wr, &bad);
  memset(stack, 0, sizeof stack);
  ok(!rc && poll_one(p->a.scq, &wc, 5000) == 1 && !wc.status &&
    is_pattern(p->b.mem, 64, 3), "64 bytes that are overwritten after posting");
  struct ibv_sge big = {(uintptr_t)p->a.mem, init.cap.max_inline_data + 1, 0};
  wr.sg_list = &big;
  ok(ibv_post_send(p->a.qp, &wr, &bad) != 0 && bad == &wr, "more than max_inline_data is refused");
}

static void reads(struct pair* p, const struct address* b) {
  struct ibv_wc wc = {0};
  begin("READ");
  pattern(p->b.mem, 70000, 11);
  ok(!post(&p->a, IBV_WR_RDMA_READ, 5, 0, 70000, b, 0, IBV_SEND_SIGNALED) && poll_one(p->a.scq, &wc, 5000) == 1 &&
    !wc.status && wc.opcode == IBV_WC_RDMA_READ, "completes");
  ok(is_pattern(p->a.mem, 70000, 11), "the bytes");
  begin("READ after WRITE");
  pattern(p->a.mem, 4096, 21);
  post(&p->a, IBV_WR_RDMA_WRITE, 6, 0, 4096, b, 8192, 0);
  post(&p->a, IBV_WR_RDMA_READ, 7, 16384, 4096, b, 8192, IBV_SEND_SIGNALED);
  ok(poll_one(p->a.scq, &wc, 5000) == 1 && wc.wr_id == 7 && !wc.status, "only the signaled one completes");
  ok(is_pattern(p->a.mem + 16384, 4096, 21), "the read sees the write before it");
}

static void atomics(struct pair* p, const struct address* b) {
  struct ibv_wc wc = {0};
  uint64_t v = 100, old;
  begin("atomics");
  memcpy(p->b.mem, &v, 8);
  struct ibv_sge g = {(uintptr_t)p->a.mem, 8, p->a.mr->lkey};
  struct ibv_send_wr wr =
    {.wr_id = 8, .sg_list = &g, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .send_flags = IBV_SEND_SIGNALED},
    *bad;
  wr.wr.atomic.remote_addr = b->mem;
  wr.wr.atomic.rkey = b->rkey;
  wr.wr.atomic.compare_add = 11;
  int rc = ibv_post_send(p->a.qp, &wr, &bad), got = poll_one(p->a.scq, &wc, 5000);
  memcpy(&old, p->a.mem, 8);
  memcpy(&v, p->b.mem, 8);
  ok(!rc && got == 1 && !wc.status && wc.opcode == IBV_WC_FETCH_ADD && old == 100 &&
    v == 111, "FETCH_ADD (status %d)", (int)wc.status);
  wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
  wr.wr.atomic.compare_add = 111;
  wr.wr.atomic.swap = 5;
  rc = ibv_post_send(p->a.qp, &wr, &bad);
  got = poll_one(p->a.scq, &wc, 5000);
  memcpy(&old, p->a.mem, 8);
  memcpy(&v, p->b.mem, 8);
  ok(!rc && got == 1 && !wc.status && wc.opcode == IBV_WC_COMP_SWAP && old == 111 &&
    v == 5, "CMP_AND_SWP (status %d)", (int)wc.status);
}

static void order(struct pair* p, const struct address* b) {
  struct ibv_wc wc = {0};
  begin("order");
  int good = 1;
  for (uint64_t i = 0; i < 32; i++) good &= !post_receive(&p->b, i, 0, 0);
  for (uint64_t i = 0; i < 32; i++) {
    struct ibv_send_wr *bad, wr = {.wr_id = i, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
      .send_flags = i % 8 == 7 ? IBV_SEND_SIGNALED : 0, .imm_data = htonl((uint32_t)i)};
    wr.wr.rdma.remote_addr = b->mem;
    wr.wr.rdma.rkey = b->rkey;
    good &= !ibv_post_send(p->a.qp, &wr, &bad);
  }
  for (uint64_t i = 0; i < 32; i++)
    good &= poll_one(p->b.rcq, &wc, 5000) == 1 && wc.wr_id == i && ntohl(wc.imm_data) == i;
  ok(good, "32 immediates complete receives in order");
  for (uint64_t i = 7; i < 32; i += 8) good &= poll_one(p->a.scq, &wc, 5000) == 1 && wc.wr_id == i;
  ok(good && quiet(p->a.scq, 20), "only signaled requests complete, in order");
}

void test_data(void) {
  struct pair p;
  struct address b;
  begin("set-up");
  if (pair(&p, &(struct options){.inline_data = 64})) return;
  self_address(&p.b, &b);
  writes(&p, &b);
  immediates(&p, &b);
  sends(&p, &b);
  inlines(&p, &b);
  reads(&p, &b);
  atomics(&p, &b);
  order(&p, &b);
  begin("tear-down");
  unpair(&p);
}
