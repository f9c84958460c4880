/* Send queues. A request runs at once, in the thread that posts it, unless one before it waits or a link is out of
 * the ordinary; then it is queued and the engine, or whoever polls, runs it when it is due. The queue has three
 * marks: acked (all before it are complete) <= exec (all before it have been placed) <= tail. A place is free again
 * when the completion that covers it has been polled. */
#include "sim.h"

#include <string.h>

static const uint8_t wc_opcode[] =
  {IBV_WC_RDMA_WRITE, IBV_WC_RDMA_WRITE, IBV_WC_SEND, IBV_WC_SEND, IBV_WC_RDMA_READ, IBV_WC_COMP_SWAP,
  IBV_WC_FETCH_ADD};

static void complete(struct vqp* q, const struct op* o, int status) {
  if (!status && !(o->flags & IBV_SEND_SIGNALED) && !q->sig_all) return;
  struct cqe e = {.wr_id = o->wr_id, .byte_len = o->len, .qpn = q->s->qpn, .wqe = o->wqe, .status = (uint8_t)status,
    .opcode = wc_opcode[o->opcode]};
  sv_cq_push(((struct vcq*)q->x.send_cq)->slot, &e, status != 0);
}

static void flush_sends(struct vqp* q) {
  for (; q->acked != q->tail; q->acked++) complete(q, sv_op(q, q->acked), IBV_WC_WR_FLUSH_ERR);
  q->exec = q->tail;
  q->halted = 0;
}

void sv_qp_error(struct vqp* q) {
  put(q->s->state, IBV_QPS_ERR);
  if (q->has_taken && q->peer) q->has_taken = 0;
  flush_sends(q);
  sv_rq_flush(q->s);
}

/* Ends the request that is first in line. */
static void finish(struct vqp* q, struct op* o) {
  q->acked++;
  complete(q, o, o->status);
  if (o->status && q->x.qp_type == IBV_QPT_RC) sv_qp_error(q);
}

static void enqueue(struct vqp* q, const struct op* o, uint64_t now) {
  struct op* n = sv_op(q, q->tail);
  struct ibv_sge* sge = (struct ibv_sge*)(n + 1);
  *n = *o;
  n->sge = sge;
  n->due = now + (q->from ? get(q->from->delay) : 0);
  if (o->flags & IBV_SEND_INLINE) {
    uint8_t* to = (uint8_t*)(sge + 1);
    for (int i = 0; i < o->nsge; to += o->sge[i++].length)
      memcpy(to, (void*)(uintptr_t)o->sge[i].addr, o->sge[i].length);
    *sge = (struct ibv_sge){(uint64_t)(uintptr_t)(sge + 1), o->len, 0};
    n->nsge = 1;
  } else if (o->nsge) {
    memcpy(sge, o->sge, sizeof *sge * o->nsge);
  }
}

static uint8_t injected(struct vqp* q, uint8_t* placed) {
  struct shdev* d = &sv_arena->devs[q->ctx->dev->index];
  if (get(d->error_in) <= 0 || (d->error_qpn && d->error_qpn != q->s->qpn) || add(d->error_in, -1) != 1) return 0;
  *placed = (uint8_t)d->error_placed;
  sv_hot();
  return (uint8_t)d->error_status;
}

/* Takes one request; o->sge may be on the caller's stack. The lock is held. */
static int post(struct vqp* q, struct op* o) {
  uint32_t state = get(q->s->state), hot = get(sv_arena->hot);
  if (state < IBV_QPS_RTS || o->opcode >= sizeof wc_opcode) return EINVAL;
  if (q->tail - get(q->s->sq_head) >= q->depth) return ENOMEM;
  if (o->nsge > q->max_sge) return EINVAL;
  o->len = 0;
  for (int i = 0; i < o->nsge; i++) o->len += o->sge[i].length;
  if ((o->flags & IBV_SEND_INLINE) && (o->len > q->max_inline || o->opcode > IBV_WR_SEND_WITH_IMM)) return EINVAL;
  o->wqe = q->tail;
  int first = q->acked == q->tail;
  if (likely(first && !hot && state == IBV_QPS_RTS)) {
    if (likely(sv_exec(q, o, 0) == EXEC_DONE)) {
      q->tail++;
      q->exec++;
      finish(q, o);
      return 0;
    }
  } else if (first && state == IBV_QPS_ERR) {
    q->tail++;
    q->exec++;
    q->acked++;
    complete(q, o, IBV_WC_WR_FLUSH_ERR);
    return 0;
  }
  if (hot) o->inject = injected(q, &o->placed);
  uint64_t now = hot || !first ? sv_now() : 0;
  enqueue(q, o, now);
  q->tail++;
  if (first && hot) sv_progress(q, now);
  if (q->acked != q->tail) sv_activate(q);
  return 0;
}

int sv_post_send(struct ibv_qp* qp, struct ibv_send_wr* wr, struct ibv_send_wr** bad) {
  struct vqp* q = (struct vqp*)qp;
  int e = sv_fail(FN_post_send);
  sv_lock(&q->lock);
  for (; wr && !e; wr = e ? wr : wr->next) {
    struct op o = {.wr_id = wr->wr_id, .raddr = wr->wr.rdma.remote_addr, .rkey = wr->wr.rdma.rkey, .imm = wr->imm_data,
                   .opcode = (uint8_t)wr->opcode, .flags = (uint8_t)wr->send_flags, .nsge = (uint8_t)wr->num_sge,
                     .sge = wr->sg_list};
    if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      o.arg[0] = wr->wr.atomic.compare_add;
      o.arg[1] = wr->wr.atomic.swap;
      o.rkey = wr->wr.atomic.rkey;
    }
    e = wr->num_sge < 0 || wr->num_sge > MAX_SGE ? EINVAL : post(q, &o);
  }
  if (e) *bad = wr;
  sv_unlock(&q->lock);
  return e;
}

/* What is queued, as far as it is due. The lock is held. */
void sv_progress(struct vqp* q, uint64_t now) {
  uint32_t hot = get(sv_arena->hot);
  q->wake = ~(uint64_t)0;
  if (get(q->s->state) == IBV_QPS_ERR) flush_sends(q);
  while (q->exec != q->tail && !q->halted) {
    struct op* o = sv_op(q, q->exec);
    int shuffle = hot && get(sv_arena->devs[q->ctx->dev->index].reorder) && o->opcode == IBV_WR_RDMA_WRITE &&
      !o->inject && o->len <= q->mtu_limit;
    if (shuffle) {
      if (sv_exec_reordered(q, now) == EXEC_WAIT) break;
    } else {
      if (sv_exec(q, o, hot ? now : 0) == EXEC_WAIT) break;
      q->halted = o->status != 0;
      o->ack_at = now + (hot ? get(q->to->delay) : 0);
      q->exec++;
    }
  }
  while (q->acked != q->exec) {
    struct op* o = sv_op(q, q->acked);
    /* placed, but the answer is lost */
    if (!o->status && hot && ((get(q->to->hole) & 1) || (get(q->from->hole) & 2))) {
      if (sv_silent(q, o, now) == EXEC_WAIT) break;
    } else if (now < o->ack_at) {
      if (q->wake > o->ack_at) q->wake = o->ack_at;
      break;
    }
    finish(q, o);
  }
}
