/* A profiler as other libraries have one, of version V, that writes down what it is told: into the file that the
 * environment names in CHAINED_LOG with ".vV" at its end. It follows every handle and parent that it gets: one that it
 * has not given is a line that begins with BAD. With CHAINED_REFUSES=V it refuses communicators, CHAINED_MASK is what it
 * wants, CHAINED_LATER what it wants a moment later. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CAT2(a, b) a##b
#define CAT(a, b) CAT2(a, b)
#define STR2(a) #a
#define STR(a) STR2(a)
#include HEADER
#define TYPE(stem) CAT(CAT(stem##_v, V), _t)

#define MOST (1 << 17)

static struct event {
  uint64_t type;
  int starts, stops;
} events[MOST];
static int count, comms[64], commCount;
static FILE* log_file;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void say(const char* format, ...) {
  va_list list;
  va_start(list, format);
  if (!log_file) {
    char path[4096];
    snprintf(path, sizeof path, "%s.v" STR(V), getenv("CHAINED_LOG"));
    log_file = fopen(path, "a");
    if (!log_file) abort();
    setlinebuf(log_file);
  }
  vfprintf(log_file, format, list);
  fputc('\n', log_file);
  va_end(list);
}

/* The number of an event of ours; 0: none. */
static int known(const void* handle, const char* what) {
  const struct event* e = handle;
  if (!handle) return 0;
  if ((uintptr_t)handle < (uintptr_t)events || (uintptr_t)handle >= (uintptr_t)(events + count)) {
    say("BAD %s %p is not mine", what, handle);
    return 0;
  }
  return (int)(e - events) + 1;
}

static int* its;

/* Its user switches it on. */
static void* later(void* unused) {
  usleep(300000);
  __atomic_store_n(its, (int)strtol(getenv("CHAINED_LATER"), NULL, 0), __ATOMIC_RELAXED);
  return unused;
}

static ncclResult_t begin(void** context, int* mask, const char* name, uint64_t id, int nodes, int ranks, int rank) {
  const char *refuses = getenv("CHAINED_REFUSES"), *wants = getenv("CHAINED_MASK");
  pthread_mutex_lock(&lock);
  say("init %s %llu %d %d %d", name ? name : "(no name)", (unsigned long long)id, nodes, ranks, rank);
  *context = &comms[commCount++ % 64];
  *mask = wants ? (int)strtol(wants, NULL, 0) : 0xffff;
  if (getenv("CHAINED_LATER") && !its) {
    pthread_t thread;
    its = mask;
    if (pthread_create(&thread, NULL, later, NULL) || pthread_detach(thread)) abort();
  }
  pthread_mutex_unlock(&lock);
  return refuses && atoi(refuses) == V ? 3 : 0;
}

#if V >= 5
static ncclResult_t init(void** context, uint64_t id, int* mask, const char* name, int nodes, int ranks, int rank,
                         ncclDebugLogger_t log) {
  (void)log;
  return begin(context, mask, name, id, nodes, ranks, rank);
}
#elif V == 4
static ncclResult_t init(void** context, int* mask, const char* name, uint64_t id, int nodes, int ranks, int rank,
                         ncclDebugLogger_t log) {
  (void)log;
  return begin(context, mask, name, id, nodes, ranks, rank);
}
#else
static ncclResult_t init(void** context, int* mask) { return begin(context, mask, NULL, 0, 0, 0, 0); }
#endif

static void startColl(char* text, size_t room, const TYPE(ncclProfilerEventDescr) * d) {
  int n = snprintf(text, room, " seq=%llu", (unsigned long long)d->coll.seqNumber);
#if V >= 2
  n += snprintf(text + n, room - (size_t)n, " func=%s", d->coll.func ? d->coll.func : "(none)");
#else
  n += snprintf(text + n, room - (size_t)n, " func=%s", d->coll.func == ncclFuncAllReduce ? "AllReduce" : "(none)");
#endif
#if V <= 3
  snprintf(text + n, room - (size_t)n, " name=%s hash=%llu", d->coll.name ? d->coll.name : "(none)",
           (unsigned long long)d->coll.commHash);
#elif V >= 5
  snprintf(text + n, room - (size_t)n, " group=%d", known(d->coll.parentGroup, "group"));
#endif
}

static ncclResult_t startEvent(void* context, void** handle, TYPE(ncclProfilerEventDescr) * d) {
  pthread_mutex_lock(&lock);
  int foreign = d->type == ncclProfileProxyOp && d->proxyOp.pid != getpid();
  int parent = foreign ? -1 : known(d->parentObj, "parent");
  if ((uintptr_t)context < (uintptr_t)comms || (uintptr_t)context >= (uintptr_t)(comms + 64)) say("BAD context %p", context);
  char more[256] = "";
  if (d->type == ncclProfileColl) startColl(more, sizeof more, d);
  *handle = NULL;
  if (count < MOST) {
    events[count] = (struct event){.type = d->type, .starts = 1};
    *handle = &events[count++];
  }
  if (!getenv("CHAINED_QUIET")) say("start %d type=%#llx below %d%s", count, (unsigned long long)d->type, parent, more);
  pthread_mutex_unlock(&lock);
  return ncclSuccess;
}

static ncclResult_t stopEvent(void* handle) {
  pthread_mutex_lock(&lock);
  int n = known(handle, "handle");
  if (n) events[n - 1].stops++;
  if (!getenv("CHAINED_QUIET")) say("stop %d", n);
  pthread_mutex_unlock(&lock);
  return ncclSuccess;
}

static ncclResult_t recordEventState(void* handle, TYPE(ncclProfilerEventState) state, TYPE(ncclProfilerEventStateArgs) * args) {
  char more[64] = "";
#if V <= 3
  if (args && state <= ncclProfilerProxyOpRecvDone)
    snprintf(more, sizeof more, " bytes=%zu steps=%d", args->proxyOp.transSize, args->proxyOp.steps);
#else
  (void)args;
#endif
  pthread_mutex_lock(&lock);
  int n = known(handle, "handle");
  if (!getenv("CHAINED_QUIET")) say("state %d %d%s", n, (int)state, more);
  pthread_mutex_unlock(&lock);
  return ncclSuccess;
}

static ncclResult_t finalize(void* context) {
  pthread_mutex_lock(&lock);
  int open = 0, twice = 0;
  for (int i = 0; i < count; i++) open += events[i].stops == 0, twice += events[i].stops > 1;
  if ((uintptr_t)context < (uintptr_t)comms || (uintptr_t)context >= (uintptr_t)(comms + 64)) say("BAD context %p", context);
  say("finalize: %d events, %d open, %d stopped twice", count, open, twice);
  pthread_mutex_unlock(&lock);
  return ncclSuccess;
}

__attribute__((visibility("default"))) CAT(CAT(ncclProfiler_v, V), _t) CAT(ncclProfiler_v, V) = {
    "chained", init, startEvent, stopEvent, recordEventState, finalize};
