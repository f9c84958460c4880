/* How communicators come and go: several at once, split, destroyed behind their work, made and destroyed again and
 * again, in threads. */
#include "driver.h"

#include <pthread.h>

static const char ROUNDS[] = "allreduce,allgather,broadcast" AND_ALLTOALL;

static size_t used(ncclComm_t comm, size_t bytes, int rounds) {
  struct bench b;
  bench_open(&b, comm, bytes);
  const size_t wrong = bench_rounds(&b, ROUNDS, rounds);
  bench_close(&b);
  return wrong;
}

/* A thread that stands for a rank. */
struct worker {
  pthread_t thread;
  ncclComm_t comm;
  ncclUniqueId id;
  int rank;
  size_t wrong;
};

static void* use(void* arg) {
  struct worker* w = arg;
  me = w->rank;
  w->wrong = used(w->comm, 1 << 18, (int)option_size("rounds", "4"));
  return NULL;
}

enum { MANY = 16 };

static size_t together(struct worker* w, int n, void* (*run)(void*)) {
  size_t wrong = 0;
  for (int i = 0; i < n; i++)
    if (pthread_create(&w[i].thread, NULL, run, &w[i])) fail("no thread can be made");
  for (int i = 0; i < n; i++) {
    pthread_join(w[i].thread, NULL);
    wrong += w[i].wrong;
  }
  return wrong;
}

size_t mode_several(ncclComm_t comm) {
  const int n = (int)option_size("n", "3");
  struct worker w[MANY];
  if (n < 1 || n > MANY) fail("n=%d: 1 to %d", n, MANY);
  for (int i = 0; i < n; i++) w[i] = (struct worker){.comm = i ? join(i) : comm, .rank = me};
  const size_t wrong = together(w, n, use);
  before_destroy();
  for (int i = 0; i < n; i++) NCCL(ncclCommDestroy(w[i].comm));
  return wrong;
}

static void* be_rank(void* arg) {
  struct worker* w = arg;
  me = w->rank;
  CUDA(cudaSetDevice(me));
  NCCL(ncclCommInitRank(&w->comm, ranks, w->id, me));
  w->wrong = used(w->comm, 1 << 18, (int)option_size("rounds", "2"));
  before_destroy();
  NCCL(ncclCommDestroy(w->comm));
  return NULL;
}

size_t mode_threads(ncclComm_t none) {
  struct worker w[MANY];
  ncclUniqueId id;
  if (none || ranks > MANY) fail("%d ranks: at most %d", ranks, MANY);
  NCCL(ncclGetUniqueId(&id));
  for (int i = 0; i < ranks; i++) w[i] = (struct worker){.id = id, .rank = i};
  return together(w, ranks, be_rank);
}

size_t mode_split(ncclComm_t comm) {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 18, 0)
  const int all = ranks, rank = me;
  size_t wrong = 0;
  for (int share = 0; share < 2; share++) {
    ncclComm_t half;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.splitShare = share;
    NCCL(ncclCommSplit(comm, rank % 2, rank, &half, &config));
    NCCL(ncclCommCount(half, &ranks));
    NCCL(ncclCommUserRank(half, &me));
    wrong += used(half, 1 << 18, 2);
    ranks = all;
    me = rank;
    /* Halves that share the proxy of the whole may be destroyed once all ranks are done with them: NCCL does not
     * wait there. */
    wrong += used(comm, 1 << 16, 1);
    NCCL(ncclCommDestroy(half));
    wrong += used(comm, 1 << 16, 1);
  }
  NCCL(ncclCommDestroy(comm));
  return wrong;
#else
  fail("communicators are split from 2.18 on");
#endif
}

size_t mode_storm(ncclComm_t none) {
  size_t wrong = 0;
  if (none) fail("the storm makes its communicators itself");
  for (int i = 0; i < (int)option_size("n", "5"); i++) {
    ncclComm_t comm = join(i);
    wrong += used(comm, 1 << 16, 1);
    meet(i); /* some releases drop what their proxies still have to send: 2.22.3 does over its own sockets, too */
    NCCL(ncclCommDestroy(comm));
  }
  return wrong;
}

size_t mode_outstanding(ncclComm_t comm) {
  struct bench b;
  const struct op o = {"allreduce", comm, NULL};
  bench_open(&b, comm, option_size("size", "4M"));
  const size_t n = b.bytes / type_size();
  size_t got = 0;
  struct op there = o;
  there.stream = b.stream;
  for (size_t i = 0; i < option_size("n", "8"); i++) got = op_run(&there, b.send, b.recv, n);
  NCCL(ncclCommDestroy(comm)); /* which waits for them */
  CUDA(cudaStreamSynchronize(b.stream));
  const size_t wrong = op_check(&there, b.recv, n, got) != 0;
  bench_close(&b);
  return wrong;
}
