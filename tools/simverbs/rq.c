/* Receive queues. Their rings are in the arena: the peer takes entries from the head. */
#include "sim.h"

#include <string.h>

void sv_rq_create(struct shqp* s, uint32_t rcq, uint32_t depth, uint32_t max_sge) {
  uint32_t size = 16, stride = 16 + 16 * (max_sge ? max_sge : 1);
  while (size < depth) size *= 2;
  s->rq = (struct rq){.mask = size - 1, .depth = depth, .stride = stride,
    .ring = sv_heap_alloc((uint64_t)size * stride)};
  if (s->rq.ring) sv_arena->cqs[s->rcq = rcq].users++;
}

void sv_rq_left(struct shqp* s) {
  uint64_t ring = s->rq.ring;
  if (!ring || get(s->proc) || get(s->ref)) return;
  s->rq.ring = 0;
  sv_heap_free(ring, (uint64_t)(s->rq.mask + 1) * s->rq.stride);
  sv_cq_let(s->rcq);
}

static struct rwqe* place(struct rq* q, uint32_t i) {
  return (struct rwqe*)((uint8_t*)sv_heap(q->ring) + (size_t)(i & q->mask) * q->stride);
}

/* The owner, flushing, may take too; what one copied while another took it is discarded. */
int sv_rq_take(struct rq* q, struct rwqe* out) {
  uint32_t h = get(q->head);
  do {
    if (h == get(q->tail)) return 0;
    memcpy(out, place(q, h), q->stride);
  } while (!__atomic_compare_exchange_n(&q->head, &h, h + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
  return 1;
}

void sv_rq_flush(struct shqp* s) {
  struct rwqe w;
  while (sv_rq_take(&s->rq, &w)) {
    struct cqe e = {.wr_id = w.wr_id, .status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV, .qpn = get(s->qpn)};
    sv_cq_push(s->rcq, &e, 1);
  }
}

static int append(struct rq* q, struct ibv_recv_wr* wr) {
  uint32_t t = q->tail;
  if (wr->num_sge < 0 || 16 + 16 * (uint32_t)wr->num_sge > q->stride) return EINVAL;
  if (t - get(q->head) >= q->depth) return ENOMEM;
  struct rwqe* w = place(q, t);
  w->wr_id = wr->wr_id;
  w->nsge = (uint32_t)wr->num_sge;
  w->len = 0;
  for (int i = 0; i < wr->num_sge; i++) {
    w->sge[i] = wr->sg_list[i];
    w->len += wr->sg_list[i].length;
  }
  put(q->tail, t + 1);
  return 0;
}

int sv_post_recv(struct ibv_qp* qp, struct ibv_recv_wr* wr, struct ibv_recv_wr** bad) {
  struct vqp* q = (struct vqp*)qp;
  int e = sv_fail(FN_post_recv);
  if (!e && get(q->s->state) == IBV_QPS_RESET) e = EINVAL;
  sv_lock(&q->recv_lock);
  while (wr && !e && !(e = append(&q->s->rq, wr))) wr = wr->next;
  sv_unlock(&q->recv_lock);
  if (e) *bad = wr;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (get(q->s->state) == IBV_QPS_ERR) sv_rq_flush(q->s);
  return e;
}
