/* events PLUGIN [key=value ...]: what an event of NCCL's profiler costs its host, called as NCCL calls it.
 *
 * Without rate= each of threads= threads times count= events of each kind, call by call: a sample is the time between
 * two readings of the clock, and the kind "clock" has no call between them. A loop without the clock follows, whose CPU
 * time is beside that of as many readings of the clock. Printed: KIND p50 p99.9 (ns), loop and loop.clock (ns a call).
 *
 * With rate= one thread has so many events a second, in bursts every millisecond, for ms= milliseconds. Printed: the
 * shares of one core that the thread and the whole process take. Where the plugin records nothing its context is NULL,
 * and, as NCCL does then, no call is made: the same loop without recording. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "nccl/profiler_v6.h"

enum { KIND_CLOCK, KIND_START, KIND_STATE, KIND_STOP, KIND_COLL, KINDS };
static const char* const kinds[KINDS] = {"clock", "start", "state", "stop", "coll"};
enum { BUCKETS = 1 << 15, MAX_THREADS = 64, PERIOD = 1000000 }; /* of a nanosecond, the last for all above; ns */

static const ncclProfiler_v6_t* profiler;
static void* context;
static int64_t count = 100000;
static pthread_barrier_t together;

/* What a thread has measured. */
struct thread {
  pthread_t id;
  double loop, loop_clock;
  uint32_t samples[KINDS][BUCKETS];
};

__attribute__((format(printf, 1, 2))) static _Noreturn void die(const char* fmt, ...) {
  va_list a;
  va_start(a, fmt);
  vfprintf(stderr, fmt, a);
  va_end(a);
  fputc('\n', stderr);
  exit(1);
}

static void logger(ncclDebugLogLevel level, unsigned long flags, const char* file, int line, const char* fmt, ...) {
  va_list a;
  (void)flags;
  (void)file;
  (void)line;
  if (level != NCCL_LOG_WARN) return;
  va_start(a, fmt);
  vfprintf(stderr, fmt, a);
  va_end(a);
  fputc('\n', stderr);
}

static int64_t clock_ns(clockid_t id) {
  struct timespec t;
  clock_gettime(id, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int64_t now(void) { return clock_ns(CLOCK_MONOTONIC); }

/* A step of the proxy, which is what NCCL has most of. */
static void* start(int step) {
  void* handle = NULL;
  ncclProfilerEventDescr_v6_t d = {.type = ncclProfileProxyStep, .proxyStep = {step}};
  profiler->startEvent(context, &handle, &d);
  return handle;
}

static void state(void* handle, int64_t bytes) {
  ncclProfilerEventStateArgs_v6_t a = {.proxyStep = {(size_t)bytes}};
  profiler->recordEventState(handle, ncclProfilerProxyStepSendWait, &a);
}

/* A collective, of which the recorder keeps more than of any other. */
static void* collective(int64_t number) {
  void* handle = NULL;
  ncclProfilerEventDescr_v6_t d = {.type = ncclProfileColl, .coll = {.seqNumber = (uint64_t)number, .func = "AllReduce",
    .count = 1 << 20, .datatype = "ncclFloat32", .nChannels = 2, .nWarps = 16, .algo = "RING", .proto = "SIMPLE"}};
  profiler->startEvent(context, &handle, &d);
  return handle;
}

static void sample(struct thread* t, int kind, int64_t from, int64_t to) {
  const int64_t ns = to - from;
  t->samples[kind][ns < BUCKETS - 1 ? ns : BUCKETS - 1]++;
}

/* One of each kind. */
static void each(struct thread* t, int64_t i) {
  int64_t from = now(), to = now();
  sample(t, KIND_CLOCK, from, to);
  from = now();
  void* handle = start((int)i);
  to = now();
  sample(t, KIND_START, from, to);
  from = now();
  state(handle, i);
  to = now();
  sample(t, KIND_STATE, from, to);
  from = now();
  profiler->stopEvent(handle);
  to = now();
  sample(t, KIND_STOP, from, to);
  from = now();
  void* coll = collective(i);
  to = now();
  sample(t, KIND_COLL, from, to);
  profiler->stopEvent(coll);
  if (!handle || !coll) die("an event was refused: no part of the file is free");
}

static void* measure(void* thread) {
  struct thread* t = thread;
  for (int64_t i = 0; i < count / 10; i++) each(t, i); /* warms up */
  memset(t->samples, 0, sizeof t->samples);
  pthread_barrier_wait(&together);
  for (int64_t i = 0; i < count; i++) each(t, i);
  pthread_barrier_wait(&together);
  const int64_t began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  for (int64_t i = 0; i < count; i++) profiler->stopEvent(start((int)i));
  const int64_t between = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  for (int64_t i = 0; i < 2 * count; i++) now();
  const int64_t ended = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  t->loop = (double)(between - began) / (double)(2 * count);
  t->loop_clock = (double)(ended - between) / (double)(2 * count);
  return NULL;
}

/* The least time that so many of a million samples do not exceed. */
static int quantile(const uint64_t* samples, uint64_t all, uint64_t of_a_million) {
  uint64_t below = 0;
  for (int ns = 0; ns < BUCKETS; ns++)
    if ((below += samples[ns]) * 1000000 >= all * of_a_million) return ns;
  return BUCKETS;
}

static void cost(int threads) {
  static uint64_t sum[BUCKETS];
  struct thread* t = calloc((size_t)threads, sizeof *t);
  double loop = 0, loop_clock = 0;
  if (!t || pthread_barrier_init(&together, NULL, (unsigned)threads)) die("no memory");
  for (int i = 0; i < threads; i++)
    if (pthread_create(&t[i].id, NULL, measure, &t[i])) die("no thread");
  for (int i = 0; i < threads; i++) {
    pthread_join(t[i].id, NULL);
    loop += t[i].loop / threads;
    loop_clock += t[i].loop_clock / threads;
  }
  for (int kind = 0; kind < KINDS; kind++) {
    uint64_t all = 0;
    memset(sum, 0, sizeof sum);
    for (int i = 0; i < threads; i++)
      for (int ns = 0; ns < BUCKETS; ns++) sum[ns] += t[i].samples[kind][ns];
    for (int ns = 0; ns < BUCKETS; ns++) all += sum[ns];
    printf("%s %d %d\n", kinds[kind], quantile(sum, all, 500000), quantile(sum, all, 999000));
  }
  printf("loop %.2f\nloop.clock %.2f\n", loop, loop_clock);
  free(t);
}

static double used(int who) {
  struct rusage r;
  getrusage(who, &r);
  return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) + (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1e-6;
}

static void sustained(int64_t rate, int64_t ms) {
  int64_t done = 0, refused = 0;
  const int64_t began = now();
  const double thread = used(RUSAGE_THREAD), process = used(RUSAGE_SELF);
  for (int64_t tick = 1; tick <= ms; tick++) {
    const int64_t until = began + tick * PERIOD;
    const struct timespec t = {until / 1000000000, until % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
    for (; done < rate * tick / 1000; done++) {
      void* handle = context ? start((int)done) : NULL;
      if (handle) profiler->stopEvent(handle);
      refused += context && !handle;
    }
  }
  const double took = (double)(now() - began) * 1e-9;
  if (refused) die("%lld events were refused", (long long)refused);
  printf("thread %.6f\nprocess %.6f\nrate %.0f\n", (used(RUSAGE_THREAD) - thread) / took,
    (used(RUSAGE_SELF) - process) / took, (double)done / took);
}

int main(int argc, char** argv) {
  int64_t threads = 1, rate = 0, ms = 1000;
  int mask = 0;
  if (argc < 2) die("usage: events PLUGIN [threads=1] [count=100000] | [rate=N] [ms=1000]");
  for (int i = 2; i < argc; i++) {
    const char* v = strchr(argv[i], '=');
    if (!v++) die("%s: key=value", argv[i]);
    if (!strncmp(argv[i], "threads=", 8)) threads = atoll(v);
    else if (!strncmp(argv[i], "count=", 6)) count = atoll(v);
    else if (!strncmp(argv[i], "rate=", 5)) rate = atoll(v);
    else if (!strncmp(argv[i], "ms=", 3)) ms = atoll(v);
    else die("%s: no such key", argv[i]);
  }
  if (threads < 1 || threads > MAX_THREADS || count < 10) die("1 to %d threads, at least 10 events", MAX_THREADS);
  void* lib = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!lib) die("%s", dlerror());
  if (!(profiler = dlsym(lib, "ncclProfiler_v6"))) die("%s has no ncclProfiler_v6", argv[1]);
  if (profiler->init(&context, 1, &mask, "bench", 2, 2, 0, logger)) die("init fails");
  const struct timespec moment = {0, 200000000};
  nanosleep(&moment, NULL); /* the recorder maps its file meanwhile, as it does while a job connects */
  if (rate) sustained(rate, ms);
  else if (!context) die("nothing is recorded: WEFT_PROFILE=trace is for that");
  else cost((int)threads);
  fflush(stdout);
  _Exit(0);
}
