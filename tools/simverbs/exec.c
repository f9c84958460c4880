/* One work request, from its send queue to the peer's memory. The thread that runs it does the work of both devices: it
 * looks the peer up in the arena, checks what a responder checks, copies, and completes the peer's receive. */
#include "sim.h"

#include <string.h>

enum { CHUNK = 65536, RETRY_LOOK = 1000000 /* ns between looks at a path that is silent */, CATCH_UP = 100000000,
  AT_ONCE = 5000 };

static int fail(struct op* o, int status) {
  o->status = (uint8_t)status;
  return EXEC_DONE;
}

static int wait_until(struct vqp* q, uint64_t when) {
  q->wake = when;
  return EXEC_WAIT;
}

/* No acknowledgement: retry as long as the queue pair's attributes say. */
int sv_silent(struct vqp* q, struct op* o, uint64_t now) {
  const struct ibv_qp_attr* a = &q->attr;
  if (q->x.qp_type == IBV_QPT_UC) return EXEC_DONE; /* lost, and nobody knows */
  if (!now) now = sv_now();
  if (!o->first_fail) o->first_fail = now;
  if (!a->timeout || (a->retry_cnt == 7 && sv_conf.retry7_forever)) return wait_until(q, now + RETRY_LOOK);
  uint64_t end = o->first_fail + (uint64_t)(a->retry_cnt + 1) * ((uint64_t)4096 << a->timeout);
  if (now >= end) return fail(o, IBV_WC_RETRY_EXC_ERR);
  return wait_until(q, end < now + RETRY_LOOK ? end : now + RETRY_LOOK);
}

/* The responder has nothing to receive into. */
static int not_ready(struct vqp* q, struct op* o, uint32_t timer) {
  static const uint32_t us[32] =
    {655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920, 2560, 3840, 5120,
                                  7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680,
                                    491520};
  if (q->x.qp_type == IBV_QPT_UC) return EXEC_DONE;
  if (q->attr.rnr_retry != 7 && q->rnr_tries++ >= q->attr.rnr_retry) return fail(o, IBV_WC_RNR_RETRY_EXC_ERR);
  return wait_until(q, sv_now() + us[timer & 31] * 1000u);
}

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }
static void occupy(uint64_t* busy, uint64_t start, uint64_t ns) {
  uint64_t old = get(*busy);
  while (!__atomic_compare_exchange_n(busy, &old, later(old, start) + ns, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {}
}

/* The bytes that have passed by now, or nearly (AT_ONCE); 0: none until *when. Links carry a request from when it is
 * due and they are free, however late (up to CATCH_UP) an engine looks; what they did not carry while they idled is
 * lost. */
static uint32_t passed(struct port* from, struct port* to, uint32_t want, uint64_t due, uint64_t now, uint64_t* when) {
  uint64_t out = get(from->rate[0]), in = get(to->rate[1]);
  uint64_t sent = out ? get(from->tx) : 0, taken = in ? get(to->rx) : 0;
  if (!out && !in) return want;
  uint32_t n = want < CHUNK ? want : CHUNK, cost = n < 64 ? 64 : n;
  uint64_t tx = out ? cost * 1000000000ull / out : 0, rx = in ? cost * 1000000000ull / in : 0;
  uint64_t start = later(later(sent, taken), later(due, now - CATCH_UP));
  if ((*when = start + later(tx, rx)) > now + AT_ONCE) return 0;
  occupy(&from->tx, start, tx);
  occupy(&to->rx, start, rx);
  return n;
}

/* The responder refuses: both queue pairs stop; its owner gets an event and, if it had taken one, a receive with
 * status. */
static int refuse(struct vqp* q, struct op* o, struct shqp* p, int status, int recv_status, int event) {
  uint32_t s = get(p->state);
  while (s != IBV_QPS_ERR &&
      !__atomic_compare_exchange_n(&p->state, &s, IBV_QPS_ERR, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    {}
  if (q->has_taken) {
    struct cqe e = {.wr_id = q->taken.wr_id, .status = (uint8_t)recv_status, .opcode = IBV_WC_RECV, .qpn = q->s->dest};
    sv_cq_push(p->rcq, &e, 1);
    q->has_taken = 0;
  }
  sv_rq_flush(p);
  put(p->cause, (uint32_t)event + 1);
  sv_kick(get(p->proc), WHY_QP);
  return fail(o, status);
}

/* [from, from + len) of the request's local buffers. */
struct local { struct iovec iov[MAX_SGE]; struct shmr* held[MAX_SGE]; int n, nheld; };

static void let_go(struct local* l) {
  for (int i = 0; i < l->nheld; i++) sv_mr_drop(l->held[i], sv_me);
}

static int gather(struct vqp* q, const struct op* o, uint32_t from, uint32_t len, uint32_t access, struct local* l) {
  l->n = l->nheld = 0;
  for (uint32_t i = 0, at = 0; i < o->nsge && len; at += o->sge[i++].length) {
    const struct ibv_sge* g = &o->sge[i];
    if (from >= at + g->length) continue;
    uint32_t skip = from - at, n = g->length - skip < len ? g->length - skip : len;
    uint64_t va = g->addr + skip;
    if (!(o->flags & IBV_SEND_INLINE)) {
      struct shmr* m = sv_mr_hold(g->lkey, sv_me, q->s->pd, access, g->addr, g->length);
      if (!m) { let_go(l); return 0; }
      l->held[l->nheld++] = m;
      va = m->addr + (va - m->iova);
    }
    l->iov[l->n++] = (struct iovec){(void*)(uintptr_t)va, n};
    from += n;
    len -= n;
  }
  return 1;
}

/* Into the buffers of the receive that was taken. */
static int scatter(struct vqp* q, struct shqp* p, struct op* o, uint32_t off, uint32_t len) {
  for (uint32_t i = 0, at = 0; i < q->taken.nsge && len; at += q->taken.sge[i++].length) {
    struct ibv_sge* g = &q->taken.sge[i];
    if (off >= at + g->length) continue;
    uint32_t skip = off - at, n = g->length - skip < len ? g->length - skip : len, proc = get(p->proc);
    struct local l;
    if (!gather(q, o, off, n, 0, &l)) return IBV_WC_LOC_PROT_ERR;
    struct shmr* m = sv_mr_hold(g->lkey, proc, p->pd, IBV_ACCESS_LOCAL_WRITE, g->addr, g->length);
    int e = m ? sv_put(m, g->addr + skip, l.iov, l.n, n) : EFAULT;
    if (m) sv_mr_drop(m, proc);
    let_go(&l);
    if (e) return e == ESRCH ? -1 : IBV_WC_REM_OP_ERR;
    off += n;
    len -= n;
  }
  return 0;
}

static void received(struct vqp* q, struct shqp* p, const struct op* o) {
  int write = o->opcode == IBV_WR_RDMA_WRITE_WITH_IMM, imm = write || o->opcode == IBV_WR_SEND_WITH_IMM;
  struct cqe e = {.wr_id = q->taken.wr_id, .byte_len = o->len, .imm = imm ? o->imm : 0,
    .qpn = q->s->dest, .src = q->s->qpn,
    .opcode = write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV, .flags = imm ? IBV_WC_WITH_IMM : 0};
  sv_cq_push(p->rcq, &e, o->flags & IBV_SEND_SOLICITED);
  q->has_taken = 0;
}

/* WRITE and READ between the local buffers and [off, off + len) of the remote ones. */
static int move(struct vqp* q, struct shqp* p, struct op* o, uint32_t off, uint32_t len) {
  int read = o->opcode == IBV_WR_RDMA_READ;
  uint32_t right = read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE, proc = get(p->proc);
  if (!(get(p->access) & right)) return IBV_WC_REM_INV_REQ_ERR; /* as rxe answers */
  if (!len) return 0;
  struct local l;
  if (!gather(q, o, off, len, read ? IBV_ACCESS_LOCAL_WRITE : 0, &l)) return IBV_WC_LOC_PROT_ERR;
  struct shmr* m = sv_mr_hold(o->rkey, proc, p->pd, right, o->raddr, o->len);
  int rc = IBV_WC_REM_ACCESS_ERR;
  if (likely(m != NULL)) {
    rc = read ? sv_fetch(m, o->raddr + off, l.iov, l.n, len) : sv_put(m, o->raddr + off, l.iov, l.n, len);
    if (rc) rc = rc == ESRCH ? -1 : IBV_WC_REM_OP_ERR;
    sv_mr_drop(m, proc);
  }
  let_go(&l);
  return rc;
}

static int atomic(struct vqp* q, struct shqp* p, struct op* o) {
  struct local l;
  uint64_t old, new;
  uint32_t proc = get(p->proc);
  if (!(get(p->access) & IBV_ACCESS_REMOTE_ATOMIC) || (o->raddr & 7)) return IBV_WC_REM_INV_REQ_ERR;
  if (o->len < 8) return IBV_WC_LOC_LEN_ERR;
  if (!gather(q, o, 0, 8, IBV_ACCESS_LOCAL_WRITE, &l)) return IBV_WC_LOC_PROT_ERR;
  struct shmr* m = sv_mr_hold(o->rkey, proc, p->pd, IBV_ACCESS_REMOTE_ATOMIC, o->raddr, 8);
  int rc = m ? 0 : IBV_WC_REM_ACCESS_ERR;
  if (m) { /* atomic among the devices of this world, as IBV_ATOMIC_HCA promises */
    struct iovec v = {&old, 8}, w = {&new, 8};
    sv_arena_lock();
    rc = sv_fetch(m, o->raddr, &v, 1, 8);
    new = o->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? old + o->arg[0] : old == o->arg[0] ? o->arg[1] : old;
    if (!rc) rc = sv_put(m, o->raddr, &w, 1, 8);
    sv_arena_unlock();
    if (rc) rc = rc == ESRCH ? -1 : IBV_WC_REM_OP_ERR;
    for (size_t i = 0, at = 0; !rc && i < (size_t)l.n; at += l.iov[i++].iov_len)
      memcpy(l.iov[i].iov_base, (uint8_t*)&old + at, l.iov[i].iov_len);
    sv_mr_drop(m, proc);
  }
  let_go(&l);
  return rc;
}

/* Went, and its memory with it, after it was found alive. */
static int gone(const struct vqp* q, const struct shqp* p) { return get(p->qpn) != q->s->dest; }

/* One partition: the same lower 15 bits, and not two limited members. */
static int partners(uint32_t a, uint32_t b) { return !((a ^ b) & 0x7fff) && ((a | b) & 0x8000); }

static int alive(const struct vqp* q, const struct shqp* p) {
  uint32_t s = get(p->state);
  return !gone(q, p) && get(p->dest) == q->s->qpn && partners(q->s->pkey, get(p->pkey)) &&
    get(p->port) == (uint32_t)(q->to - sv_arena->ports) && s >= IBV_QPS_RTR && s < IBV_QPS_ERR;
}

static int deliver(struct vqp* q, struct op* o, struct shqp* p, uint64_t now) {
  int send = o->opcode == IBV_WR_SEND || o->opcode == IBV_WR_SEND_WITH_IMM;
  if (!q->has_taken && (send || o->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)) {
    if (!sv_rq_take(&p->rq, &q->taken)) return not_ready(q, o, get(p->rnr_timer));
    q->has_taken = 1;
    q->rnr_tries = 0;
    if (send && q->taken.len < o->len)
      return refuse(q, o, p, IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR, IBV_EVENT_QP_REQ_ERR);
  }
  for (;;) {
    uint64_t when = 0;
    uint32_t n = now ? passed(q->from, q->to, o->len - o->done, o->due, now, &when) : o->len - o->done;
    if (!n && o->len != o->done) return wait_until(q, when);
    int atom = o->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || o->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    int rc = atom ? atomic(q, p, o) : send ? scatter(q, p, o, o->done, n) : move(q, p, o, o->done, n);
    if (rc == IBV_WC_LOC_PROT_ERR || rc == IBV_WC_LOC_LEN_ERR) return fail(o, rc);
    if (rc < 0 || (rc && gone(q, p))) return sv_silent(q, o, now);
    if (rc == IBV_WC_REM_OP_ERR) return refuse(q, o, p, rc, IBV_WC_LOC_PROT_ERR, IBV_EVENT_QP_FATAL);
    int event = rc == IBV_WC_REM_ACCESS_ERR ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR;
    if (rc) return refuse(q, o, p, rc, IBV_WC_WR_FLUSH_ERR, event);
    o->done += n;
    if (o->done == o->len || atom) break;
  }
  if (q->has_taken) received(q, p, o);
  o->first_fail = 0;
  return EXEC_DONE;
}

/* Whether a packet of the request, or of its answer if it reads, is larger than what a port on its way passes. */
static int too_large(struct vqp* q, const struct op* o) {
  int read = o->opcode == IBV_WR_RDMA_READ;
  uint32_t mtu = 128u << q->attr.path_mtu, size = o->len < mtu ? o->len : mtu;
  uint32_t out = get((read ? q->to : q->from)->most[0]), in = get((read ? q->from : q->to)->most[1]);
  return (out && size > out) || (in && size > in);
}

/* EXEC_DONE with o->status, or EXEC_WAIT until q->wake. `now` is 0 while every link is as it should be. */
int sv_exec(struct vqp* q, struct op* o, uint64_t now) {
  if (o->inject && !o->placed) return fail(o, o->inject);
  if (now) {
    if (get(q->from->down) && q->ctx->dev->conf->down_fails) return fail(o, IBV_WC_LOC_QP_OP_ERR);
    if (now < o->due) return wait_until(q, o->due);
    if (get(q->from->down) || get(q->to->down) || (get(q->from->hole) & 1) || (get(q->to->hole) & 2) || too_large(q, o))
      return sv_silent(q, o, now);
  }
  if (o->len > q->mtu_limit) return sv_silent(q, o, now); /* its packets are too large for a port */
  struct shqp* p = q->peer;
  add(p->ref, 1);
  int rc = likely(alive(q, p)) ? deliver(q, o, p, now) : sv_silent(q, o, now);
  __atomic_fetch_sub(&p->ref, 1, __ATOMIC_RELEASE);
  if (rc == EXEC_DONE && o->inject && !o->status) o->status = o->inject;
  return rc;
}

/* Places the WRITEs up to the next other request piece by piece in random order. Waits a little for more to shuffle. */
int sv_exec_reordered(struct vqp* q, uint64_t now) {
  struct piece { struct op* o; uint32_t off, len; } piece[512], swap;
  uint32_t n = 0, i = q->exec;
  for (; i != q->tail && n + 8 <= 512; i++) {
    struct op* o = sv_op(q, i);
    if (o->opcode != IBV_WR_RDMA_WRITE || o->inject || o->len > q->mtu_limit) break;
    uint32_t part = o->len / 8 < 64 ? 64 : (o->len / 8 + 63) & ~63u;
    for (uint32_t off = 0; off < o->len || !off; off += part)
      piece[n++] = (struct piece){o, off, o->len - off < part ? o->len - off : part};
  }
  if (i == q->tail && now < sv_op(q, q->exec)->due + 50000) return wait_until(q, sv_op(q, q->exec)->due + 50000);
  struct shqp* p = q->peer;
  add(p->ref, 1);
  int ok = alive(q, p);
  for (uint32_t k = 0; k < n && ok; k++) {
    uint32_t r = k + (uint32_t)(sv_random() % (n - k));
    swap = piece[k];
    piece[k] = piece[r];
    piece[r] = swap;
    struct op* o = piece[k].o;
    int rc = o->status ? 0 : move(q, p, o, piece[k].off, piece[k].len);
    if (rc && rc != IBV_WC_LOC_PROT_ERR && gone(q, p)) rc = -1;
    if (rc == IBV_WC_REM_ACCESS_ERR || rc == IBV_WC_REM_INV_REQ_ERR) refuse(q, o, p, rc, 0, IBV_EVENT_QP_ACCESS_ERR);
    else if (rc) fail(o, rc < 0 ? IBV_WC_RETRY_EXC_ERR : rc);
  }
  __atomic_fetch_sub(&p->ref, 1, __ATOMIC_RELEASE);
  if (!ok) return sv_silent(q, sv_op(q, q->exec), now);
  for (uint32_t k = q->exec; k != i; k++) {
    sv_op(q, k)->ack_at = now + get(q->to->delay);
    q->halted |= sv_op(q, k)->status != 0;
  }
  q->exec = i;
  return EXEC_DONE;
}
