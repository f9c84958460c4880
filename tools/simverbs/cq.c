/* Completion queues. A queue's ring is in the arena, since a peer's process completes our receives: it claims a
 * place at the tail, fills it and publishes it by its sequence number. Our threads read under a lock of their own;
 * no producer waits for them. */
#include "sim.h"

#include <string.h>
#include <unistd.h>

struct vcq* sv_cqs[MAX_CQ];

PUBLIC struct ibv_comp_channel* ibv_create_comp_channel(struct ibv_context* ctx) {
  int fds[2];
  struct vchan* c = sv_new(sv_fail(FN_create_comp_channel), sizeof *c);
  if (!c || sv_pipe(fds)) { free(c); return NULL; }
  c->chan.context = ctx;
  c->chan.fd = fds[0];
  c->event_fd = fds[1];
  return (struct ibv_comp_channel*)c;
}

PUBLIC int ibv_destroy_comp_channel(struct ibv_comp_channel* chan) {
  struct vchan* c = (struct vchan*)chan;
  int e = sv_fail(FN_destroy_comp_channel);
  if (e || get(chan->refcnt)) return e ? e : EBUSY;
  close(chan->fd);
  close(c->event_fd);
  free(c);
  return 0;
}

static struct cqe* place(struct shcq* s, uint32_t i) { return (struct cqe*)sv_heap(s->ring) + (i & s->mask); }

PUBLIC struct ibv_cq* ibv_create_cq(struct ibv_context* ctx, int cqe, void* cq_context, struct ibv_comp_channel* chan,
  int vector) {
  int e = sv_fail(FN_create_cq);
  if (!e && (cqe < 1 || cqe > ((struct vdev*)ctx->device)->conf->max_cqe || vector)) e = EINVAL;
  struct vcq* cq = sv_new(e, sizeof *cq);
  if (!cq) return NULL;
  uint32_t size = 16, found = 0;
  while (size < (uint32_t)cqe) size *= 2;
  sv_arena_lock();
  for (uint32_t n = 1; n < MAX_CQ && !found; n++) {
    uint32_t i = (sv_arena->next_cq + n) % MAX_CQ;
    if (i && !sv_arena->cqs[i].users) found = i;
  }
  uint64_t ring = found ? sv_heap_alloc(size * sizeof(struct cqe)) : 0;
  if (ring) {
    sv_arena->next_cq = found;
    cq->s = &sv_arena->cqs[found];
    *cq->s = (struct shcq){.users = 1, .proc = sv_me, .mask = size - 1, .depth = (uint32_t)cqe, .ring = ring,
      .notify = chan != NULL};
  }
  sv_arena_unlock();
  if (!ring) { free(cq); errno = ENOMEM; return NULL; }
  cq->x = (struct ibv_cq){.context = ctx, .channel = chan, .cq_context = cq_context, .handle = found, .cqe = cqe};
  cq->slot = found;
  if (chan) add(chan->refcnt, 1);
  put(sv_cqs[found], cq);
  return &cq->x;
}

void sv_cq_let(uint32_t slot) {
  struct shcq* s = &sv_arena->cqs[slot];
  if (--s->users == 0) sv_heap_free(s->ring, (uint64_t)(s->mask + 1) * sizeof(struct cqe));
}

PUBLIC int ibv_destroy_cq(struct ibv_cq* c) {
  struct vcq* cq = (struct vcq*)c;
  int e = sv_fail(FN_destroy_cq);
  if (e || get(cq->used)) return e ? e : EBUSY;
  sv_lock(&sv_objects_lock);
  put(sv_cqs[cq->slot], NULL);
  sv_unlock(&sv_objects_lock);
  sv_settle(&c->comp_events_completed, &cq->got);
  sv_settle(&c->async_events_completed, &cq->async_got);
  sv_arena_lock();
  put(cq->s->proc, 0);
  sv_cq_let(cq->slot);
  sv_arena_unlock();
  if (c->channel) __atomic_fetch_sub(&c->channel->refcnt, 1, __ATOMIC_ACQ_REL);
  free(cq);
  return 0;
}

/* An event names the queue by slot, so that one of a queue that is gone meanwhile is passed over. */
static void fire(struct vcq* cq) {
  uint32_t slot = cq->slot;
  if (cq->x.channel && write(((struct vchan*)cq->x.channel)->event_fd, &slot, sizeof slot) < 0)
    sv_log("a completion channel is full");
}

PUBLIC int ibv_get_cq_event(struct ibv_comp_channel* chan, struct ibv_cq** out, void** cq_context) {
  MAY_FAIL_WITH(get_cq_event, -1);
  for (;;) {
    uint32_t slot;
    ssize_t n = read(chan->fd, &slot, sizeof slot);
    if (n != sizeof slot) { if (n >= 0) errno = EBADF; return -1; }
    sv_lock(&sv_objects_lock);
    struct vcq* cq = sv_cqs[slot % MAX_CQ];
    int here = cq && cq->x.channel == chan;
    if (here) {
      add(cq->got, 1);
      *out = &cq->x;
      *cq_context = cq->x.cq_context;
    }
    sv_unlock(&sv_objects_lock);
    if (here) return 0;
  }
}

PUBLIC void ibv_ack_cq_events(struct ibv_cq* cq, unsigned n) { add(cq->comp_events_completed, n); }

int sv_req_notify_cq(struct ibv_cq* cq, int solicited_only) {
  MAY_FAIL(req_notify_cq);
  put(((struct vcq*)cq)->s->armed, solicited_only ? 2u : 1u);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return 0;
}

/* What peers left for us to tell: an armed queue got an entry, or a queue ran over. */
void sv_cq_scan(void) {
  sv_lock(&sv_objects_lock);
  for (uint32_t i = 1; i < MAX_CQ; i++) {
    struct vcq* cq = sv_cqs[i];
    if (!cq) continue;
    if (__atomic_exchange_n(&cq->s->fired, 0, __ATOMIC_ACQ_REL)) fire(cq);
    uint32_t one = 1;
    if (__atomic_compare_exchange_n(&cq->s->full, &one, 2, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      sv_event(sv_ctx(cq->x.context), IBV_EVENT_CQ_ERR, i);
  }
  sv_unlock(&sv_objects_lock);
}

void sv_cq_push(uint32_t slot, const struct cqe* e, int solicited) {
  struct shcq* s = &sv_arena->cqs[slot];
  uint32_t t = get(s->tail);
  do {
    /* overrun, if t is not old: the entry is lost, once and for all */
    if ((int32_t)(t - get(s->head)) >= (int32_t)s->depth) {
      uint32_t none = 0;
      if (__atomic_compare_exchange_n(&s->full, &none, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        sv_kick(get(s->proc), WHY_CQ);
      return;
    }
  } while (!__atomic_compare_exchange_n(&s->tail, &t, t + 1, 1, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
  struct cqe* c = place(s, t);
  c->claimer = sv_me;
  c->wr_id = e->wr_id;
  c->byte_len = e->byte_len;
  c->imm = e->imm;
  c->qpn = e->qpn;
  c->src = e->src;
  c->wqe = e->wqe;
  c->status = e->status;
  c->opcode = e->opcode;
  c->flags = e->flags;
  c->skip = 0;
  put(c->seq, t + 1);
  if (likely(!s->notify)) return;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  uint32_t armed = get(s->armed);
  if (!armed || (armed == 2 && !solicited && !e->status)) return;
  if (!__atomic_compare_exchange_n(&s->armed, &armed, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
  struct vcq* own = get(s->proc) == sv_me ? get(sv_cqs[slot]) : NULL;
  if (own) {
    fire(own);
  } else {
    put(s->fired, 1);
    sv_kick(get(s->proc), WHY_CQ);
  }
}

/* A place whose claimer died between claiming and publishing would hold up the queue for ever. */
static int abandoned(struct vcq* cq, struct cqe* c) {
  uint64_t now = sv_now();
  if (!cq->stuck) cq->stuck = now;
  if (now - cq->stuck < 2000000000u || get(sv_arena->procs[c->claimer].pid)) return 0;
  cq->stuck = 0;
  return 1;
}

static int drain(struct vcq* cq, int n, struct ibv_wc* wc) {
  struct shcq* s = cq->s;
  int got = 0;
  sv_lock(&cq->lock);
  uint32_t h = s->head;
  while (got < n) {
    struct cqe* c = place(s, h);
    if (get(c->seq) != h + 1) {
      if (likely(get(s->tail) == h) || !abandoned(cq, c)) break;
      h++;
      continue;
    }
    h++;
    cq->stuck = 0;
    if (!(c->opcode & IBV_WC_RECV)) { /* its place in the send queue, and those before it, can be used again */
      struct shqp* q = &sv_arena->qps[c->qpn % MAX_QP];
      if (get(q->qpn) == c->qpn) put(q->sq_head, c->wqe + 1);
    }
    if (c->skip) continue;
    wc[got++] = (struct ibv_wc){.wr_id = c->wr_id, .status = (enum ibv_wc_status)c->status,
      .opcode = (enum ibv_wc_opcode)c->opcode,
        .byte_len = c->byte_len, .imm_data = c->imm, .qp_num = c->qpn, .src_qp = c->src, .wc_flags = c->flags};
  }
  put(s->head, h);
  sv_unlock(&cq->lock);
  return got;
}

int sv_poll_cq(struct ibv_cq* c, int n, struct ibv_wc* wc) {
  struct vcq* cq = (struct vcq*)c;
  if (sv_fail(FN_poll_cq)) return -1;
  int got = drain(cq, n, wc);
  if (likely(got || !get(sv_nactive))) return got;
  sv_progress_all(); /* an idle poller does what is due instead of waiting for the engine to wake */
  return drain(cq, n, wc);
}

/* Entries of a queue pair that is destroyed or reset are never seen. */
void sv_cq_clean(uint32_t slot, uint32_t qpn, int sends) {
  struct vcq* cq = get(sv_cqs[slot]);
  if (!cq) return;
  sv_lock(&cq->lock);
  for (uint32_t i = cq->s->head; i != get(cq->s->tail); i++) {
    struct cqe* c = place(cq->s, i);
    if (get(c->seq) == i + 1 && c->qpn == qpn && (c->opcode < IBV_WC_RECV) == sends) c->skip = 1;
  }
  sv_unlock(&cq->lock);
}
