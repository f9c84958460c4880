/* The engine: one thread a process that runs what waits for a time (rates, delays, retries), tells what peers' threads left
 * to be told, and clears away what dead processes left. Asynchronous events are here too. */
#include "sim.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

uint32_t sv_nactive, sv_objects_lock;
static struct vqp* active;
static uint32_t active_lock;
static uint64_t engine_sleeps_until;
static pid_t engine_of;

void sv_engine_wake(uint64_t when) {
  if (when < get(engine_sleeps_until)) sv_kick(sv_me, 0);
}

void sv_activate(struct vqp* q) {
  sv_lock(&active_lock);
  if (!q->active) {
    q->active = 1;
    q->next = active;
    active = q;
    add(sv_nactive, 1);
  }
  sv_unlock(&active_lock);
  sv_engine_wake(q->wake);
}

static void unlink_active(struct vqp** p) {
  struct vqp* q = *p;
  *p = q->next;
  q->active = 0;
  __atomic_fetch_sub(&sv_nactive, 1, __ATOMIC_ACQ_REL);
}

void sv_deactivate(struct vqp* q) {
  sv_lock(&active_lock);
  struct vqp** p = &active;
  while (*p && *p != q) p = &(*p)->next;
  if (*p) unlink_active(p);
  sv_unlock(&active_lock);
}

/* Runs every queue that is due; the time of the next. */
static uint64_t progress(void) {
  uint64_t now = sv_now(), next = ~(uint64_t)0;
  for (struct vqp** p = &active; *p;) {
    struct vqp* q = *p;
    if (!sv_trylock(&q->lock)) { next = now + 20000; p = &q->next; continue; }
    if (q->wake <= now || get(q->s->state) == IBV_QPS_ERR) sv_progress(q, now);
    int done = q->acked == q->tail;
    if (done) unlink_active(p);
    else if (p = &q->next, q->wake < next) next = q->wake;
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
  for (uint32_t i = 1; i < MAX_PROC; i++) {
    if (get(sv_arena->procs[i].pid)) sv_kick(i, WHY_EVENT);
  }
}

static int about_qp(uint32_t type) {
  return (type >= IBV_EVENT_QP_FATAL && type <= IBV_EVENT_PATH_MIG_ERR) || type == IBV_EVENT_QP_LAST_WQE_REACHED;
}

static void tell_events(uint32_t* seen) {
  for (; *seen != get(sv_arena->nevent); ++*seen) {
    struct event e = sv_arena->events[*seen % 64];
    sv_lock(&sv_contexts_lock);
    sv_lock(&sv_objects_lock);
    for (struct vctx* c = sv_contexts; c; c = c->next) {
      if ((uint32_t)c->dev->index != e.dev) continue;
      struct vqp* q = about_qp(e.type) ? get(sv_qps[e.arg % MAX_QP]) : NULL;
      if (!about_qp(e.type) || (q && q->ctx == c && q->s->qpn == e.arg)) sv_event(c, (int)e.type, q ? q->slot : e.arg);
    }
    sv_unlock(&sv_objects_lock);
    sv_unlock(&sv_contexts_lock);
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
  int e = sv_fail(FN_get_async_event);
  if (e) { errno = e; return -1; }
  for (;;) {
    uint32_t m[2];
    ssize_t n = read(ctx->async_fd, m, sizeof m);
    if (n != sizeof m) { if (n >= 0) errno = EBADF; return -1; }
    out->event_type = (enum ibv_event_type)m[0];
    sv_lock(&sv_objects_lock);
    struct vqp* q = about_qp(m[0]) ? sv_qps[m[1] % MAX_QP] : NULL;
    struct vcq* cq = m[0] == IBV_EVENT_CQ_ERR ? sv_cqs[m[1] % MAX_CQ] : NULL;
    if (q) add(q->got, 1), out->element.qp = &q->x;
    else if (cq) add(cq->async_got, 1), out->element.cq = &cq->x;
    else out->element.port_num = (int)m[1];
    sv_unlock(&sv_objects_lock);
    if (q || cq || (!about_qp(m[0]) && m[0] != IBV_EVENT_CQ_ERR)) return 0; /* else its object is gone */
  }
}

PUBLIC void ibv_ack_async_event(struct ibv_async_event* e) {
  pthread_mutex_t* mutex = NULL;
  pthread_cond_t* cond = NULL;
  uint32_t* count = NULL;
  if (about_qp(e->event_type)) mutex = &e->element.qp->mutex, cond = &e->element.qp->cond, count = &e->element.qp->events_completed;
  if (e->event_type == IBV_EVENT_CQ_ERR) mutex = &e->element.cq->mutex, cond = &e->element.cq->cond, count = &e->element.cq->async_events_completed;
  if (!mutex) return;
  pthread_mutex_lock(mutex);
  ++*count;
  pthread_cond_signal(cond);
  pthread_mutex_unlock(mutex);
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
    sv_unlock(&active_lock);
    if (next > reap) next = reap;
    put(engine_sleeps_until, next);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    now = sv_now();
    uint64_t ns = next > now ? next - now : 0;
    struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    if (ns && !get(me->why)) syscall(SYS_futex, &me->kick, FUTEX_WAIT, kick, &t, NULL, 0);
  }
  return NULL;
}

int sv_engine_start(void) {
  static uint32_t lock;
  int rc = 0;
  sv_lock(&lock);
  if (engine_of != getpid()) {
    sigset_t all, old;
    pthread_t thread;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&thread, &attr, run, (void*)(uintptr_t)get(sv_arena->nevent));
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    if (!rc) engine_of = getpid();
  }
  sv_unlock(&lock);
  return rc;
}
