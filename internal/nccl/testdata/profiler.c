/* profiler.c: a profiler plugin that writes down the life of each event: its kind, that of its parent, the states that were recorded,
 * in the order in which they first came, and its end. PROFILER_MASK: the events that it wants, all if unset. PROFILER_LOG names the file to append to; the line is written when the event is stopped. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler_net.h"
#include "profiler_v1.h"
#include "profiler_v2.h"
#include "profiler_v3.h"
#include "profiler_v4.h"
#include "profiler_v5.h"
#include "profiler_v6.h"

static const char* const kinds[] = {"Group", "Coll", "P2p", "ProxyOp", "ProxyStep", "ProxyCtrl", "KernelCh", "NetPlugin",
                                    "GroupApi", "CollApi", "P2pApi", "KernelLaunch", "CeColl", "CeSync", "CeBatch", "KernelPhase"};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Never freed: a parent may have ended before its children begin. */
struct event {
  const char *kind, *parent;
  uint64_t had; /* states */
  char life[256];
};

/* id: of the network, for its events. */
static const char* kind(uint64_t type, int64_t id) {
  if (type == ncclProfileNetPlugin && id == (NCCL_PROFILER_NET_TYPE_IB | NCCL_PROFILER_NET_IB_VER)) return "queue pair";
  if (type == ncclProfileNetPlugin && id == (NCCL_PROFILER_NET_TYPE_SOCK | NCCL_PROFILER_NET_SOCKET_VER)) return "socket";
  for (int i = 0; i < KINDS; i++)
    if (type == 1u << i) return kinds[i];
  return "unknown";
}

static ncclResult_t start(void** handle, uint64_t type, void* parent, int64_t id) {
  struct event* e = calloc(1, sizeof *e);
  if (!e) return ncclSystemError;
  *e = (struct event){.kind = kind(type, id), .parent = parent ? ((struct event*)parent)->kind : "none"};
  *handle = e;
  return ncclSuccess;
}

/* A state counts once: which steps of an operation overlap is a matter of time. */
static ncclResult_t record(void* handle, int state) {
  struct event* e = handle;
  const size_t n = e ? strlen(e->life) : 0;
  if (!e || e->had >> state & 1) return ncclSuccess;
  snprintf(e->life + n, sizeof e->life - n, " %d", state);
  e->had |= 1ull << state;
  return ncclSuccess;
}

static ncclResult_t stop(void* handle) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  const char* path = getenv("PROFILER_LOG");
  const struct event* e = handle;
  FILE* f = path && e ? fopen(path, "a") : NULL;
  if (!f) return ncclSuccess;
  pthread_mutex_lock(&lock);
  fprintf(f, "%s in %s:%s stop\n", e->kind, e->parent, e->life);
  fclose(f);
  pthread_mutex_unlock(&lock);
  return ncclSuccess;
}

static ncclResult_t finalize(void* context) { (void)context; return ncclSuccess; }

static ncclResult_t begin(void** context, int* mask) {
  static int one;
  *context = &one;
  const char* only = getenv("PROFILER_MASK");
  *mask = only ? (int)strtol(only, NULL, 0) : 0xffff & ~ncclProfileProxyCtrl; /* whose events follow no operation but the clock */
  return ncclSuccess;
}

#define PROFILER(v, net, ...)                                                                                                       \
  static ncclResult_t init_v##v(__VA_ARGS__) { return begin(context, mask); }                                                  \
  static ncclResult_t start_v##v(void* c, void** h, ncclProfilerEventDescr_v##v##_t* d) { (void)c; return start(h, d->type, d->parentObj, net); } \
  static ncclResult_t record_v##v(void* h, ncclProfilerEventState_v##v##_t s, ncclProfilerEventStateArgs_v##v##_t* a) { (void)a; return record(h, (int)s); } \
  __attribute__((visibility("default"))) const ncclProfiler_v##v##_t ncclProfiler_v##v = {"recorder", init_v##v, start_v##v, stop, record_v##v, finalize};

#pragma GCC diagnostic ignored "-Wunused-parameter"
PROFILER(1, 0, void** context, int* mask)
PROFILER(2, 0, void** context, int* mask)
#define ID d->type == ncclProfileNetPlugin ? d->netPlugin.id : 0
PROFILER(3, ID, void** context, int* mask)
PROFILER(4, ID, void** context, int* mask, const char* name, uint64_t hash, int nodes, int ranks, int rank, ncclDebugLogger_t log)
PROFILER(5, ID, void** context, uint64_t id, int* mask, const char* name, int nodes, int ranks, int rank, ncclDebugLogger_t log)
PROFILER(6, ID, void** context, uint64_t id, int* mask, const char* name, int nodes, int ranks, int rank, ncclDebugLogger_t log)
