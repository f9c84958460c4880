/* Queue pairs: creation, the state machine with what each transition requires, ECE. */
#include "sim.h"

#include <string.h>

struct vqp* sv_qps[MAX_QP];

/* Who is late for the last queue pair of a place may still count itself in and out of its ref. */
static int claim(struct vqp* q, struct vdev* d, uint32_t rcq, const struct ibv_qp_cap* cap) {
  struct shqp* s = NULL;
  int room = add(d->qps, 1) < (uint32_t)d->conf->max_qp;
  sv_arena_lock();
  for (uint32_t n = 1; n < MAX_QP && !s && room; n++) {
    uint32_t i = (sv_arena->next_qp + n) % MAX_QP;
    if (i < 16 || get(sv_arena->qps[i].proc) || get(sv_arena->qps[i].ref)) continue;
    s = &sv_arena->qps[i];
    sv_arena->next_qp = q->slot = i;
    sv_rq_left(s);
    memset(&s->state, 0, sizeof *s - offsetof(struct shqp, state));
  }
  if (s) sv_rq_create(s, rcq, cap->max_recv_wr, cap->max_recv_sge);
  if (s && s->rq.ring) {
    s->gen = (s->gen + 1) & 0xff;
    s->port = (uint32_t)d->index * MAX_PORT;
    put(s->proc, sv_me);
    put(s->qpn, (s->gen * MAX_QP + q->slot) & 0xffffff);
    q->s = s;
  }
  sv_arena_unlock();
  if (!q->s) __atomic_fetch_sub(&d->qps, 1, __ATOMIC_RELAXED);
  return q->s ? 0 : ENOMEM;
}

static void release(struct vqp* q) {
  if (q->s) {
    __atomic_fetch_sub(&q->ctx->dev->qps, 1, __ATOMIC_RELAXED);
    sv_arena_lock();
    put(q->s->proc, 0);
    sv_rq_left(q->s);
    sv_arena_unlock();
  }
  free(q->ring);
  free(q);
}

static uint32_t at_least(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* As rxe does, an entry holds inline data where its SGEs would be, so that asking for either gives both. */
PUBLIC struct ibv_qp* ibv_create_qp(struct ibv_pd* pd, struct ibv_qp_init_attr* a) {
  struct vctx* ctx = sv_ctx(pd->context);
  struct devconf* c = ctx->dev->conf;
  struct ibv_qp_cap* cap = &a->cap;
  int e = sv_fail(FN_create_qp);
  if (!e && (a->qp_type != IBV_QPT_RC && a->qp_type != IBV_QPT_UC)) e = EOPNOTSUPP;
  if (!e && (!a->send_cq || !a->recv_cq || cap->max_send_wr > (uint32_t)c->max_qp_wr ||
      cap->max_recv_wr > (uint32_t)c->max_qp_wr ||
             cap->max_send_sge > (uint32_t)c->max_sge || cap->max_recv_sge > (uint32_t)c->max_sge ||
             cap->max_inline_data > (uint32_t)c->max_inline)) e = EINVAL;
  struct vqp* q = sv_new(e, sizeof *q);
  if (!q) return NULL;
  uint32_t room = at_least(cap->max_inline_data, 16 * at_least(cap->max_send_sge, 1)), size = 16;
  room = (room + 15) & ~15u;
  if (room > (uint32_t)c->max_inline)
    room = (uint32_t)c->max_inline > 16 * cap->max_send_sge ? (uint32_t)c->max_inline : 16 * cap->max_send_sge;
  while (size < cap->max_send_wr) size *= 2;
  q->ctx = ctx;
  q->stride = (uint32_t)sizeof(struct op) + room + 16;
  q->ring = calloc(size, q->stride);
  if (!q->ring || claim(q, ctx->dev, ((struct vcq*)a->recv_cq)->slot, cap)) {
    release(q);
    errno = ENOMEM;
    return NULL;
  }
  q->s->pd = ((struct vpd*)pd)->id;
  q->mask = size - 1;
  q->depth = cap->max_send_wr;
  q->sig_all = a->sq_sig_all != 0;
  q->max_inline = cap->max_inline_data = room < (uint32_t)c->max_inline ? room : (uint32_t)c->max_inline;
  q->max_sge = cap->max_send_sge = at_least(cap->max_send_sge, 1);
  q->attr.cap = *cap;
  q->x = (struct ibv_qp){.context = pd->context, .qp_context = a->qp_context, .pd = pd, .send_cq = a->send_cq,
      .recv_cq = a->recv_cq, .handle = q->slot, .qp_num = q->s->qpn, .qp_type = a->qp_type};
  add(((struct vpd*)pd)->used, 1);
  add(((struct vcq*)a->send_cq)->used, 1);
  add(((struct vcq*)a->recv_cq)->used, 1);
  put(sv_qps[q->slot], q);
  return &q->x;
}

PUBLIC int ibv_destroy_qp(struct ibv_qp* qp) {
  struct vqp* q = (struct vqp*)qp;
  MAY_FAIL(destroy_qp);
  sv_lock(&sv_objects_lock);
  put(sv_qps[q->slot], NULL);
  sv_unlock(&sv_objects_lock);
  sv_deactivate(q);
  sv_settle(&qp->events_completed, &q->got);
  uint32_t qpn = __atomic_exchange_n(&q->s->qpn, 0, __ATOMIC_ACQ_REL);
  sv_wait_ref(&q->s->ref);
  sv_cq_clean(((struct vcq*)qp->send_cq)->slot, qpn, 1);
  sv_cq_clean(((struct vcq*)qp->recv_cq)->slot, qpn, 0);
  __atomic_fetch_sub(&((struct vpd*)qp->pd)->used, 1, __ATOMIC_ACQ_REL);
  __atomic_fetch_sub(&((struct vcq*)qp->send_cq)->used, 1, __ATOMIC_ACQ_REL);
  __atomic_fetch_sub(&((struct vcq*)qp->recv_cq)->used, 1, __ATOMIC_ACQ_REL);
  release(q);
  return 0;
}

/* What a transition needs, and what it takes besides. */
static const struct { uint8_t from, to; int need, may; } moves[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_RTR,
      IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
      IBV_QP_MIN_RNR_TIMER,
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_RTR, IBV_QPS_RTS,
      IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE},
};
static const int UC_ONLY_RC = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
  IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;

static int legal(struct vqp* q, uint32_t from, uint32_t to, int mask) {
  int uc = q->x.qp_type == IBV_QPT_UC ? UC_ONLY_RC : 0;
  mask &= ~(IBV_QP_STATE | IBV_QP_CUR_STATE);
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return 1;
  for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++) {
    if (moves[i].from != from || moves[i].to != to) continue;
    int need = moves[i].need & ~uc;
    return (mask & need) == need && !(mask & ~(need | moves[i].may));
  }
  return 0;
}

/* The port that the address vector leads to. */
static int resolve(struct vqp* q, const struct ibv_ah_attr* ah) {
  struct devconf* c = q->ctx->dev->conf;
  struct port* from = &sv_arena->ports[q->s->port];
  if (ah->port_num < 1 || ah->port_num > c->ports || (uint32_t)ah->port_num - 1 != q->s->port % MAX_PORT) return EINVAL;
  if (!ah->is_global) {
    if (!c->ib || !ah->dlid || ah->dlid > MAX_DEV * MAX_PORT) return EINVAL;
    q->to = &sv_arena->ports[ah->dlid - 1];
    return sv_same_net(from, q->to) ? 0 : ETIMEDOUT;
  }
  if (ah->grh.sgid_index >= MAX_GID) return EINVAL;
  const struct gid* own = &from->gids[ah->grh.sgid_index];
  if (!get(own->used)) return ENODATA;
  for (int i = 0; i < sv_conf.ndev * MAX_PORT; i++) {
    struct port* p = &sv_arena->ports[i];
    for (int k = 0; k < MAX_GID; k++) {
      if (!get(p->gids[k].used) || memcmp(&p->gids[k].raw, &ah->grh.dgid, 16)) continue;
      q->to = p;
      return sv_same_net(from, p) || sv_routed(own, &p->gids[k]) ? 0 : ETIMEDOUT;
    }
  }
  return ETIMEDOUT;
}

static int to_rtr(struct vqp* q, const struct ibv_qp_attr* a) {
  int e = resolve(q, &a->ah_attr);
  if (e) return e;
  if (a->path_mtu < IBV_MTU_256 || a->path_mtu > IBV_MTU_4096) return EINVAL;
  int to = (int)((q->to - sv_arena->ports) / MAX_PORT), mtu = q->ctx->dev->conf->mtu, other = sv_conf.dev[to].mtu;
  mtu = mtu < other ? mtu : other;
  q->from = &sv_arena->ports[q->s->port];
  q->peer = &sv_arena->qps[a->dest_qp_num % MAX_QP];
  q->s->dest = a->dest_qp_num;
  q->s->rnr_timer = a->min_rnr_timer;
  q->mtu_limit = (128 << a->path_mtu) > mtu ? (uint32_t)mtu : ~0u;
  return 0;
}

static void reset(struct vqp* q) {
  struct rwqe w;
  put(q->s->state, IBV_QPS_RESET);
  while (sv_rq_take(&q->s->rq, &w)) {}
  sv_cq_clean(((struct vcq*)q->x.send_cq)->slot, q->s->qpn, 1);
  sv_cq_clean(((struct vcq*)q->x.recv_cq)->slot, q->s->qpn, 0);
  q->tail = q->exec = q->acked = q->halted = 0;
  q->has_taken = q->rnr_tries = 0;
  put(q->s->sq_head, 0);
}

static void keep(struct vqp* q, const struct ibv_qp_attr* a, int mask) {
  struct ibv_qp_attr* k = &q->attr;
#define KEEP(bit, field) if (mask & IBV_QP_##bit) k->field = a->field;
  KEEP(PORT, port_num) KEEP(PKEY_INDEX, pkey_index) KEEP(ACCESS_FLAGS, qp_access_flags)
  KEEP(AV, ah_attr) KEEP(PATH_MTU, path_mtu) KEEP(DEST_QPN, dest_qp_num) KEEP(RQ_PSN, rq_psn) KEEP(SQ_PSN, sq_psn)
  KEEP(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic) KEEP(MAX_QP_RD_ATOMIC, max_rd_atomic) KEEP(MIN_RNR_TIMER, min_rnr_timer)
  KEEP(TIMEOUT, timeout) KEEP(RETRY_CNT, retry_cnt) KEEP(RNR_RETRY, rnr_retry)
#undef KEEP
  put(q->s->access, k->qp_access_flags);
  put(q->s->pkey, q->ctx->dev->conf->pkeys[k->pkey_index]);
  put(q->s->rnr_timer, k->min_rnr_timer);
}

PUBLIC int ibv_modify_qp(struct ibv_qp* qp, struct ibv_qp_attr* a, int mask) {
  struct vqp* q = (struct vqp*)qp;
  MAY_FAIL(modify_qp);
  int e = 0;
  sv_lock(&q->lock);
  uint32_t from = get(q->s->state), to = mask & IBV_QP_STATE ? (uint32_t)a->qp_state : from;
  if (((mask & IBV_QP_CUR_STATE) && (uint32_t)a->cur_qp_state != from) || !legal(q, from, to, mask)) e = EINVAL;
  if (!e && (mask & IBV_QP_PORT) && (a->port_num < 1 || a->port_num > q->ctx->dev->conf->ports)) e = EINVAL;
  if (!e && (mask & IBV_QP_PKEY_INDEX) && a->pkey_index >= q->ctx->dev->conf->npkey) e = EINVAL;
  if (!e && to == IBV_QPS_RTR) e = to_rtr(q, a);
  if (!e) {
    if (mask & IBV_QP_PORT) q->s->port = (uint32_t)q->ctx->dev->index * MAX_PORT + a->port_num - 1;
    keep(q, a, mask);
    if (to == IBV_QPS_RESET) reset(q);
    else if (to == IBV_QPS_ERR) sv_qp_error(q);
    else put(q->s->state, to);
    qp->state = (enum ibv_qp_state)to;
  }
  sv_unlock(&q->lock);
  return e;
}

PUBLIC int ibv_query_qp(struct ibv_qp* qp, struct ibv_qp_attr* a, int mask, struct ibv_qp_init_attr* init) {
  struct vqp* q = (struct vqp*)qp;
  MAY_FAIL(query_qp);
  sv_lock(&q->lock);
  *a = q->attr;
  a->qp_state = a->cur_qp_state = qp->state = (enum ibv_qp_state)get(q->s->state);
  *init = (struct ibv_qp_init_attr){.qp_context = qp->qp_context, .send_cq = qp->send_cq, .recv_cq = qp->recv_cq,
                                    .cap = q->attr.cap, .qp_type = qp->qp_type, .sq_sig_all = (int)q->sig_all};
  sv_unlock(&q->lock);
  return 0;
}

PUBLIC int ibv_query_ece(struct ibv_qp* qp, struct ibv_ece* ece) {
  struct vqp* q = (struct vqp*)qp;
  struct devconf* c = q->ctx->dev->conf;
  int e = sv_fail(FN_query_ece);
  if (e || !c->ece_vendor) return e ? e : EOPNOTSUPP;
  *ece = q->ece.vendor_id ? q->ece : (struct ibv_ece){.vendor_id = c->ece_vendor, .options = c->ece_options};
  return 0;
}

PUBLIC int ibv_set_ece(struct ibv_qp* qp, struct ibv_ece* ece) {
  struct vqp* q = (struct vqp*)qp;
  struct devconf* c = q->ctx->dev->conf;
  int e = sv_fail(FN_set_ece);
  if (e || !c->ece_vendor) return e ? e : EOPNOTSUPP;
  if (ece->comp_mask || ece->vendor_id != c->ece_vendor) return EINVAL;
  q->ece = *ece;
  q->ece.options &= c->ece_options;
  return 0;
}

