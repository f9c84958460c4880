/* The engine: one thread a process that runs what waits for a time (rates, delays, retries), tells what peers'
 * threads left to be told, and clears away what dead processes left. Asynchronous events are here too. */
#include "sim.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

uint32_t sv_nactive, sv_objects_lock;
static struct vqp* active[MAX_QP]; /* the first sv_nactive */
static uint32_t active_lock;
static uint64_t engine_sleeps_until;

void sv_activate(struct vqp* q) {
  sv_lock(&active_lock);
  if (!q->active) active[add(sv_nactive, 1)] = q;
  q->active = 1;
  sv_unlock(&active_lock);
  if (q->wake < get(engine_sleeps_until)) sv_kick(sv_me, 0);
}

static void leave(uint32_t i) {
  active[i]->active = 0;
  active[i] = active[add(sv_nactive, -1) - 1];
}

void sv_deactivate(struct vqp* q) {
  sv_lock(&active_lock);
  for (uint32_t i = 0; q->active; i++) if (active[i] == q) leave(i);
  sv_unlock(&active_lock);
}

/* Runs every queue that is due; the time of the next. */
static uint64_t progress(void) {
  uint64_t now = sv_now(), next = ~(uint64_t)0;
  for (uint32_t i = 0; i < sv_nactive;) {
    struct vqp* q = active[i];
    if (!sv_trylock(&q->lock)) { next = now + 20000; i++; continue; }
    if (q->wake <= now || get(q->s->state) == IBV_QPS_ERR) sv_progress(q, now);
    if (q->acked == q->tail) {
      leave(i);
    } else {
      if (q->wake < next) next = q->wake;
      i++;
    }
    sv_unlock(&q->lock);
  }
  return next;
}

void sv_progress_all(void) {
  if (!sv_trylock(&active_lock)) return;
  progress();
  sv_unlock(&active_lock);
}

/* ---- Asynchronous events ---- */

void sv_event(struct vctx* ctx, int type, uint32_t arg) {
  uint32_t e[2] = {(uint32_t)type, arg};
  if (write(ctx->event_fd, e, sizeof e) < 0) sv_log("the event channel of %s is full", ctx->dev->conf->name);
}

void sv_broadcast(int dev, int type, uint32_t arg) {
  sv_arena_lock();
  uint32_t n = sv_arena->nevent;
  sv_arena->events[n % 64] = (struct event){.dev = (uint32_t)dev, .type = (uint32_t)type, .arg = arg};
  put(sv_arena->nevent, n + 1);
  sv_arena_unlock();
  for (uint32_t i = 1; i < MAX_PROC; i++)
    if (get(sv_arena->procs[i].pid)) sv_kick(i, WHY_EVENT);
}

static int about_qp(uint32_t type) {
  return (type >= IBV_EVENT_QP_FATAL && type <= IBV_EVENT_PATH_MIG_ERR) || type == IBV_EVENT_QP_LAST_WQE_REACHED;
}

static void tell_events(uint32_t* seen) {
  for (; *seen != get(sv_arena->nevent); ++*seen) {
    struct event e = sv_arena->events[*seen % 64];
    sv_lock(&sv_objects_lock);
    for (struct vctx* c = sv_contexts; c; c = c->next) {
      if ((uint32_t)c->dev->index != e.dev) continue;
      struct vqp* q = about_qp(e.type) ? get(sv_qps[e.arg % MAX_QP]) : NULL;
      if (!about_qp(e.type) || (q && q->ctx == c && q->s->qpn == e.arg)) sv_event(c, (int)e.type, q ? q->slot : e.arg);
    }
    sv_unlock(&sv_objects_lock);
  }
}

/* Queue pairs that a peer's request broke. */
static void tell_qps(void) {
  sv_lock(&sv_objects_lock);
  for (uint32_t i = 0; i < MAX_QP; i++) {
    struct vqp* q = get(sv_qps[i]);
    uint32_t cause = q ? __atomic_exchange_n(&q->s->cause, 0, __ATOMIC_ACQ_REL) : 0;
    if (!cause) continue;
    sv_lock(&q->lock);
    sv_qp_error(q);
    sv_unlock(&q->lock);
    sv_event(q->ctx, (int)cause - 1, i);
  }
  sv_unlock(&sv_objects_lock);
}

PUBLIC int ibv_get_async_event(struct ibv_context* ctx, struct ibv_async_event* out) {
  MAY_FAIL_WITH(get_async_event, -1);
  for (;;) {
    uint32_t m[2];
    ssize_t n = read(ctx->async_fd, m, sizeof m);
    if (n != sizeof m) { if (n >= 0) errno = EBADF; return -1; }
    out->event_type = (enum ibv_event_type)m[0];
    sv_lock(&sv_objects_lock);
    struct vqp* q = about_qp(m[0]) ? sv_qps[m[1] % MAX_QP] : NULL;
    struct vcq* cq = m[0] == IBV_EVENT_CQ_ERR ? sv_cqs[m[1] % MAX_CQ] : NULL;
    if (q) {
      add(q->got, 1);
      out->element.qp = &q->x;
    } else if (cq) {
      add(cq->async_got, 1);
      out->element.cq = &cq->x;
    }
    else out->element.port_num = (int)m[1];
    sv_unlock(&sv_objects_lock);
    if (q || cq || (!about_qp(m[0]) && m[0] != IBV_EVENT_CQ_ERR)) return 0; /* else its object is gone */
  }
}

PUBLIC void ibv_ack_async_event(struct ibv_async_event* e) {
  if (about_qp(e->event_type)) add(e->element.qp->events_completed, 1);
  if (e->event_type == IBV_EVENT_CQ_ERR) add(e->element.cq->async_events_completed, 1);
}

/* ---- The thread ---- */

static void* run(void* arg) {
  struct proc* me = &sv_arena->procs[sv_me];
  uint32_t seen = (uint32_t)(uintptr_t)arg;
  uint64_t reap = 0, sweep = sv_now();
  prctl(PR_SET_TIMERSLACK, 1);
  prctl(PR_SET_NAME, "simverbs");
  for (;;) {
    uint32_t kick = get(me->kick), why = __atomic_exchange_n(&me->why, 0, __ATOMIC_ACQ_REL);
    if (why & WHY_EVENT) tell_events(&seen);
    if (why & WHY_QP) tell_qps();
    if (why & WHY_CQ) sv_cq_scan();
    uint64_t now = sv_now(), next;
    if (now >= reap) { sv_reap(); reap = now + 50000000; }
    if (now >= sweep) { sv_share_sweep(); sweep = now + 1000000000; }
    put(engine_sleeps_until, 0); /* while we look nobody needs to wake us, except by changing kick */
    sv_lock(&active_lock);
    next = progress();
    if (next > reap) next = reap;
    put(engine_sleeps_until, next); /* before anybody activates another queue */
    sv_unlock(&active_lock);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    now = sv_now();
    uint64_t ns = next > now ? next - now : 0;
    struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    if (ns && !get(me->why)) syscall(SYS_futex, &me->kick, FUTEX_WAIT, kick, &t, NULL, 0);
  }
  return NULL;
}

int sv_engine_start(void) { return sv_thread(run, (void*)(uintptr_t)get(sv_arena->nevent)); }
