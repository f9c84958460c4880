/* The queue pair that takes requests call by call: the calls between wr_start and wr_complete fill one request; the next
 * opcode, or wr_complete, posts it. wr_abort, or an error, takes back nothing that ran already. */
#include "sim.h"

#include <string.h>

static struct vqp* of(struct ibv_qp_ex* x) { return (struct vqp*)x; }

static void post_filled(struct vqp* q) {
  if (q->ex.opcode != 0xff && !q->ex_err) q->ex_err = sv_post_op(q, &q->ex);
  q->ex.opcode = 0xff;
}

static void start(struct ibv_qp_ex* x) {
  sv_lock(&of(x)->lock);
  of(x)->ex.opcode = 0xff;
  of(x)->ex_err = 0;
}
static int finish(struct ibv_qp_ex* x) {
  struct vqp* q = of(x);
  int e = sv_fail(FN_post_send);
  if (!e) post_filled(q), e = q->ex_err;
  sv_unlock(&q->lock);
  return e;
}
static void undo(struct ibv_qp_ex* x) { sv_unlock(&of(x)->lock); }

static void begin(struct ibv_qp_ex* x, uint8_t opcode, uint32_t rkey, uint64_t raddr, uint32_t imm) {
  struct vqp* q = of(x);
  post_filled(q);
  q->ex = (struct op){.wr_id = x->wr_id, .flags = (uint8_t)x->wr_flags, .opcode = opcode, .rkey = rkey, .raddr = raddr, .imm = imm, .sge = q->ex_sge};
}
static void wr_write(struct ibv_qp_ex* x, uint32_t rkey, uint64_t at) { begin(x, IBV_WR_RDMA_WRITE, rkey, at, 0); }
static void wr_write_imm(struct ibv_qp_ex* x, uint32_t rkey, uint64_t at, uint32_t imm) { begin(x, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, at, imm); }
static void wr_read(struct ibv_qp_ex* x, uint32_t rkey, uint64_t at) { begin(x, IBV_WR_RDMA_READ, rkey, at, 0); }
static void wr_send(struct ibv_qp_ex* x) { begin(x, IBV_WR_SEND, 0, 0, 0); }
static void wr_send_imm(struct ibv_qp_ex* x, uint32_t imm) { begin(x, IBV_WR_SEND_WITH_IMM, 0, 0, imm); }
static void wr_cas(struct ibv_qp_ex* x, uint32_t rkey, uint64_t at, uint64_t compare, uint64_t swap) {
  begin(x, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, at, 0);
  of(x)->ex.arg[0] = compare, of(x)->ex.arg[1] = swap;
}
static void wr_add(struct ibv_qp_ex* x, uint32_t rkey, uint64_t at, uint64_t n) {
  begin(x, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, at, 0);
  of(x)->ex.arg[0] = n;
}
static void set_sges(struct ibv_qp_ex* x, size_t n, const struct ibv_sge* list) {
  if (n > MAX_SGE) { of(x)->ex_err = EINVAL; return; }
  memcpy(of(x)->ex_sge, list, n * sizeof *list);
  of(x)->ex.nsge = (uint8_t)n;
}
static void set_sge(struct ibv_qp_ex* x, uint32_t lkey, uint64_t addr, uint32_t length) {
  of(x)->ex_sge[0] = (struct ibv_sge){addr, length, lkey};
  of(x)->ex.nsge = 1;
}
static void set_inline(struct ibv_qp_ex* x, void* addr, size_t length) {
  of(x)->ex.flags |= IBV_SEND_INLINE;
  set_sge(x, 0, (uint64_t)(uintptr_t)addr, (uint32_t)length);
}
static void set_inlines(struct ibv_qp_ex* x, size_t n, const struct ibv_data_buf* list) {
  if (n > MAX_SGE) { of(x)->ex_err = EINVAL; return; }
  of(x)->ex.flags |= IBV_SEND_INLINE;
  for (size_t i = 0; i < n; i++) of(x)->ex_sge[i] = (struct ibv_sge){(uint64_t)(uintptr_t)list[i].addr, (uint32_t)list[i].length, 0};
  of(x)->ex.nsge = (uint8_t)n;
}

void sv_qp_ex_ops(struct ibv_qp_ex* x) {
  x->wr_start = start, x->wr_complete = finish, x->wr_abort = undo;
  x->wr_rdma_write = wr_write, x->wr_rdma_write_imm = wr_write_imm, x->wr_rdma_read = wr_read;
  x->wr_send = wr_send, x->wr_send_imm = wr_send_imm, x->wr_atomic_cmp_swp = wr_cas, x->wr_atomic_fetch_add = wr_add;
  x->wr_set_sge = set_sge, x->wr_set_sge_list = set_sges, x->wr_set_inline_data = set_inline, x->wr_set_inline_data_list = set_inlines;
}

struct ibv_qp* sv_create_qp_ex(struct ibv_context* ctx, struct ibv_qp_init_attr_ex* a) {
  if (!(a->comp_mask & IBV_QP_INIT_ATTR_PD) || (a->comp_mask & ~(uint32_t)(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)) || a->send_ops_flags >> 7) {
    errno = EOPNOTSUPP;
    return NULL;
  }
  return sv_create_qp(a->pd, (struct ibv_qp_init_attr*)a, 1);
}

PUBLIC struct ibv_qp_ex* ibv_qp_to_qp_ex(struct ibv_qp* qp) {
  struct vqp* q = (struct vqp*)qp;
  return q->x.wr_start ? &q->x : NULL;
}
