/* Events. Recording one puts a mark into a stream; who waits has the mark, whatever becomes of the event. */
#include "simcuda.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct mark {
  int refs; /* atomic */
  pthread_mutex_t lock;
  pthread_cond_t reached;
  bool done;
  struct timespec at;
};

struct CUevent_st {
  pthread_mutex_t lock;
  struct mark* mark; /* the latest, or NULL */
};

static struct mark* hold(struct mark* m) {
  if (m) __atomic_fetch_add(&m->refs, 1, __ATOMIC_RELAXED);
  return m;
}

static void drop(struct mark* m) {
  if (m && __atomic_sub_fetch(&m->refs, 1, __ATOMIC_ACQ_REL) == 0) free(m);
}

static struct mark* latest(cudaEvent_t e) {
  pthread_mutex_lock(&e->lock);
  struct mark* m = hold(e->mark);
  pthread_mutex_unlock(&e->lock);
  return m;
}

static bool is_done(struct mark* m, struct timespec* at) {
  if (!m) return false;
  pthread_mutex_lock(&m->lock);
  const bool done = m->done;
  *at = m->at;
  pthread_mutex_unlock(&m->lock);
  return done;
}

static void wait_for(struct mark* m) {
  pthread_mutex_lock(&m->lock);
  while (!m->done) pthread_cond_wait(&m->reached, &m->lock);
  pthread_mutex_unlock(&m->lock);
}

struct mark_work {
  struct work w;
  struct mark* m;
};

static void reach(struct work* w) {
  struct mark* m = ((struct mark_work*)w)->m;
  pthread_mutex_lock(&m->lock);
  clock_gettime(CLOCK_MONOTONIC, &m->at);
  m->done = true;
  pthread_cond_broadcast(&m->reached);
  pthread_mutex_unlock(&m->lock);
  drop(m);
}

static void wait_here(struct work* w) {
  struct mark* m = ((struct mark_work*)w)->m;
  wait_for(m);
  drop(m);
}

static void add(cudaStream_t s, void (*run)(struct work* w), struct mark* m) {
  struct mark_work* w = work_new(run, sizeof *w);
  w->m = m;
  stream_add(s, w);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned flags) {
  *e = calloc(1, sizeof **e);
  if (!*e) return failed(cudaErrorMemoryAllocation);
  pthread_mutex_init(&(*e)->lock, NULL);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* e) { return cudaEventCreateWithFlags(e, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t e) {
  drop(e->mark);
  pthread_mutex_destroy(&e->lock);
  free(e);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  struct mark* m = calloc(1, sizeof *m);
  if (!m) return failed(cudaErrorMemoryAllocation);
  m->refs = 2; /* the event's and the work's */
  pthread_mutex_init(&m->lock, NULL);
  pthread_cond_init(&m->reached, NULL);
  pthread_mutex_lock(&e->lock);
  drop(e->mark);
  e->mark = m;
  pthread_mutex_unlock(&e->lock);
  add(s, reach, m);
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags) {
  struct mark* m = latest(e);
  if (m) add(s, wait_here, m);
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t e) {
  struct timespec at;
  struct mark* m = latest(e);
  const bool done = !m || is_done(m, &at);
  drop(m);
  return done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  struct mark* m = latest(e);
  if (m) wait_for(m);
  drop(m);
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
  struct timespec a, b;
  struct mark *x = latest(from), *y = latest(to);
  const bool both = is_done(x, &a) && is_done(y, &b);
  if (both) *ms = (float)(b.tv_sec - a.tv_sec) * 1e3f + (float)(b.tv_nsec - a.tv_nsec) / 1e6f;
  drop(x);
  drop(y);
  return both ? cudaSuccess : failed(cudaErrorNotReady);
}
