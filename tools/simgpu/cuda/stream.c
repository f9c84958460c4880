/* Streams: each has a thread that does its work in order. A stream lives until it is destroyed and nobody uses it. */
#include "simcuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct CUstream_st {
  CUstream next; /* in the list of all */
  int refs;      /* the owner's, the thread's, and of those who wait; under streams_lock */
  int device;
  unsigned long long id;
  pthread_t thread;

  pthread_mutex_t lock; /* protects the rest */
  pthread_cond_t more, idle;
  struct work *head, **tail;
  bool busy, quit;
};

enum { DEVICES = 64 };

static pthread_mutex_t streams_lock = PTHREAD_MUTEX_INITIALIZER;
static CUstream streams;             /* under streams_lock, as are the next two */
static CUstream defaults[DEVICES];   /* the stream that NULL means, by device */
static unsigned long long next_id = 10;

static void out_of_memory(void) {
  fprintf(stderr, "simgpu: out of memory or threads\n");
  abort();
}

void* work_new(void (*run)(struct work* w), size_t size) {
  struct work* w = aligned_alloc(64, (size + 63) & ~(size_t)63);
  if (!w) out_of_memory();
  *w = (struct work){NULL, run};
  return w;
}

static void drop(CUstream s) {
  pthread_mutex_lock(&streams_lock);
  const bool last = --s->refs == 0;
  pthread_mutex_unlock(&streams_lock);
  if (!last) return;
  pthread_cond_destroy(&s->more);
  pthread_cond_destroy(&s->idle);
  pthread_mutex_destroy(&s->lock);
  free(s);
}

static void* serve(void* arg) {
  CUstream s = arg;
  device_current = s->device;
  pthread_mutex_lock(&s->lock);
  for (;;) {
    while (!s->quit && !s->head) pthread_cond_wait(&s->more, &s->lock);
    struct work* w = s->head;
    if (!w) break;
    if (!(s->head = w->next)) s->tail = &s->head;
    s->busy = true;
    pthread_mutex_unlock(&s->lock);
    w->run(w);
    free(w);
    pthread_mutex_lock(&s->lock);
    s->busy = false;
    if (!s->head) pthread_cond_broadcast(&s->idle);
  }
  pthread_mutex_unlock(&s->lock);
  drop(s);
  return NULL;
}

/* With streams_lock held. */
static CUstream create(void) {
  CUstream s = calloc(1, sizeof *s);
  if (!s) out_of_memory();
  s->refs = 2;
  s->device = device_current;
  s->id = next_id++;
  s->tail = &s->head;
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->more, NULL);
  pthread_cond_init(&s->idle, NULL);
  if (pthread_create(&s->thread, NULL, serve, s)) out_of_memory();
  pthread_detach(s->thread);
  s->next = streams;
  streams = s;
  return s;
}

/* The stream that a handle means: NULL, cudaStreamLegacy and cudaStreamPerThread are the device's own. */
static CUstream resolve(CUstream s) {
  if ((uintptr_t)s > 2) return s;
  pthread_mutex_lock(&streams_lock);
  CUstream* d = &defaults[device_current % DEVICES];
  if (!*d) *d = create();
  s = *d;
  pthread_mutex_unlock(&streams_lock);
  return s;
}

void stream_add(CUstream s, void* work) {
  s = resolve(s);
  struct work* w = work;
  pthread_mutex_lock(&s->lock);
  *s->tail = w;
  s->tail = &w->next;
  pthread_cond_signal(&s->more);
  pthread_mutex_unlock(&s->lock);
}

static void wait_idle(CUstream s) {
  pthread_mutex_lock(&s->lock);
  while (s->head || s->busy) pthread_cond_wait(&s->idle, &s->lock);
  pthread_mutex_unlock(&s->lock);
}

void stream_sync(CUstream s) { wait_idle(resolve(s)); }

void streams_sync(int device) {
  CUstream held[256];
  int n = 0;
  pthread_mutex_lock(&streams_lock);
  for (CUstream s = streams; s && n < 256; s = s->next) {
    if (s->device != device || pthread_equal(s->thread, pthread_self())) continue;
    s->refs++;
    held[n++] = s;
  }
  pthread_mutex_unlock(&streams_lock);
  for (int i = 0; i < n; i++) {
    wait_idle(held[i]);
    drop(held[i]);
  }
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned flags) {
  pthread_mutex_lock(&streams_lock);
  *out = create();
  pthread_mutex_unlock(&streams_lock);
  return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t* s) { return cudaStreamCreateWithFlags(s, cudaStreamDefault); }

/* What was added is still done. */
cudaError_t cudaStreamDestroy(cudaStream_t s) {
  pthread_mutex_lock(&streams_lock);
  for (CUstream* at = &streams; *at; at = &(*at)->next)
    if (*at == s) {
      *at = s->next;
      break;
    }
  pthread_mutex_unlock(&streams_lock);
  pthread_mutex_lock(&s->lock);
  s->quit = true;
  pthread_cond_signal(&s->more);
  pthread_mutex_unlock(&s->lock);
  drop(s);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s) { stream_sync(s); return cudaSuccess; }

cudaError_t cudaStreamQuery(cudaStream_t s) {
  s = resolve(s);
  pthread_mutex_lock(&s->lock);
  const bool idle = !s->head && !s->busy;
  pthread_mutex_unlock(&s->lock);
  return idle ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamGetId(cudaStream_t s, unsigned long long* id) { *id = resolve(s)->id; return cudaSuccess; }

/* Nothing is ever captured into a graph. */
cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus* st) { *st = cudaStreamCaptureStatusNone;
  return cudaSuccess; }

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t s, cudaStreamCaptureStatus* st, unsigned long long* id) {
  *st = cudaStreamCaptureStatusNone;
  if (id) *id = 0;
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t s, cudaStreamCaptureStatus* st, unsigned long long* id,
  cudaGraph_t* g,
                                        const cudaGraphNode_t** deps, size_t* n) {
  if (g) *g = NULL;
  if (deps) *deps = NULL;
  if (n) *n = 0;
  return cudaStreamGetCaptureInfo(s, st, id);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* m) {
  static _Thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  const cudaStreamCaptureMode old = mode;
  mode = *m;
  *m = old;
  return cudaSuccess;
}
