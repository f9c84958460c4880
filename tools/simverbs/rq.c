/* Receive queues, of a queue pair or shared. Their rings are in the arena: the peer takes entries from the head. */
#include "sim.h"

#include <pthread.h>
#include <string.h>

uint32_t sv_rq_create(uint32_t depth, uint32_t max_sge) {
  uint32_t size = 16, found = 0, stride = 16 + 16 * (max_sge ? max_sge : 1);
  while (size < depth) size *= 2;
  sv_arena_lock();
  for (uint32_t n = 1; n < MAX_QP && !found; n++) {
    uint32_t i = (sv_arena->next_rq + n) % MAX_QP;
    if (i && !sv_arena->rqs[i].ring) found = i;
  }
  uint64_t ring = found ? sv_heap_alloc((uint64_t)size * stride) : 0;
  if (ring) {
    sv_arena->next_rq = found;
    sv_arena->rqs[found] = (struct rq){.mask = size - 1, .depth = depth, .stride = stride, .proc = sv_me, .ring = ring};
  }
  sv_arena_unlock();
  return ring ? found : 0;
}

void sv_rq_destroy(uint32_t i) {
  if (!i) return;
  sv_arena_lock();
  struct rq* q = &sv_arena->rqs[i];
  sv_heap_free(q->ring, (uint64_t)(q->mask + 1) * q->stride);
  *q = (struct rq){0};
  sv_arena_unlock();
}

static struct rwqe* place(struct rq* q, uint32_t i) {
  return (struct rwqe*)((uint8_t*)sv_heap(q->ring) + (size_t)(i & q->mask) * q->stride);
}

/* Several peers may take from a shared queue; what one copied while another took it is discarded. */
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
  if (s->srq) return;
  while (sv_rq_take(&sv_arena->rqs[s->rq], &w)) {
    struct cqe e = {.wr_id = w.wr_id, .status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV, .qpn = s->qpn};
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
  if (!e && (get(q->s->state) == IBV_QPS_RESET || q->s->srq)) e = EINVAL;
  sv_lock(&q->recv_lock);
  for (; wr && !e; wr = wr->next) {
    e = append(&sv_arena->rqs[q->s->rq], wr);
    if (e) break;
  }
  sv_unlock(&q->recv_lock);
  if (e) *bad = wr;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (get(q->s->state) == IBV_QPS_ERR) sv_rq_flush(q->s);
  return e;
}

int sv_post_srq_recv(struct ibv_srq* srq, struct ibv_recv_wr* wr, struct ibv_recv_wr** bad) {
  struct vsrq* q = (struct vsrq*)srq;
  int e = sv_fail(FN_post_srq_recv);
  sv_lock(&q->lock);
  for (; wr && !e; wr = wr->next) {
    e = append(q->s, wr);
    if (e) break;
  }
  sv_unlock(&q->lock);
  if (e) *bad = wr;
  return e;
}

PUBLIC struct ibv_srq* ibv_create_srq(struct ibv_pd* pd, struct ibv_srq_init_attr* a) {
  struct devconf* c = ((struct vdev*)pd->context->device)->conf;
  int e = sv_fail(FN_create_srq);
  if (!e && (!a->attr.max_wr || a->attr.max_wr > (uint32_t)c->max_qp_wr || a->attr.max_sge > (uint32_t)c->max_sge)) e = EINVAL;
  struct vsrq* q = e ? NULL : calloc(1, sizeof *q);
  if (q && !(q->slot = sv_rq_create(a->attr.max_wr, a->attr.max_sge))) free(q), q = NULL;
  if (!q) { errno = e ? e : ENOMEM; return NULL; }
  q->s = &sv_arena->rqs[q->slot];
  q->max_sge = a->attr.max_sge;
  q->srq.context = pd->context;
  q->srq.srq_context = a->srq_context;
  q->srq.pd = pd;
  pthread_mutex_init(&q->srq.mutex, NULL);
  pthread_cond_init(&q->srq.cond, NULL);
  add(((struct vpd*)pd)->used, 1);
  return &q->srq;
}

PUBLIC int ibv_modify_srq(struct ibv_srq* srq, struct ibv_srq_attr* a, int mask) {
  if (mask & IBV_SRQ_MAX_WR) return EOPNOTSUPP;
  if (mask & IBV_SRQ_LIMIT) put(((struct vsrq*)srq)->s->limit, a->srq_limit);
  return 0;
}

PUBLIC int ibv_query_srq(struct ibv_srq* srq, struct ibv_srq_attr* a) {
  struct vsrq* q = (struct vsrq*)srq;
  *a = (struct ibv_srq_attr){.max_wr = q->s->depth, .max_sge = q->max_sge, .srq_limit = q->s->limit};
  return 0;
}

PUBLIC int ibv_destroy_srq(struct ibv_srq* srq) {
  struct vsrq* q = (struct vsrq*)srq;
  int e = sv_fail(FN_destroy_srq);
  if (e || get(q->used)) return e ? e : EBUSY;
  sv_rq_destroy(q->slot);
  __atomic_fetch_sub(&((struct vpd*)srq->pd)->used, 1, __ATOMIC_ACQ_REL);
  free(q);
  return 0;
}
