/* What the host hands to plugins: the callback for net events, which keeps what it hears. */
#include <stdlib.h>
#include <string.h>

#include "host.h"
#include "profiler_net.h"

enum { MAX_EVENTS = 4096 };

/* One start, and what came of it. */
struct heard {
  uint64_t parent, wr, length, last; /* last: the length of the update, or 0 */
  int64_t id;
  int type, device, op, stops;
  unsigned qp;
};

static struct {
  pthread_mutex_t lock;
  bool deaf;                                /* as NCCL without a profiler: no event gets a handle */
  uint64_t starts, stops, updates, orphans; /* orphans: starts without a parent handle; NCCL would follow it */
  uint64_t unwanted;                        /* starts while deaf */
  struct heard event[MAX_EVENTS];
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void describe(struct heard* e, int64_t id, const void* data) {
  e->id = id;
  if (!data) return;
  if ((id & NCCL_PROFILER_NET_TYPE_MASK) == NCCL_PROFILER_NET_TYPE_IB) {
    const ncclProfilerNetIbDescr_v1_t* d = data;
    e->type = d->type;
    e->device = d->qp.device;
    e->op = d->qp.opcode;
    e->qp = (unsigned)d->qp.qpNum;
    e->wr = d->qp.wr_id;
    e->length = d->qp.length;
  } else {
    const ncclProfilerNetSockDescr_v1_t* d = data;
    e->type = d->type;
    e->device = d->sock.fd;
    e->op = d->sock.op;
    e->length = d->sock.length;
  }
}

/* Handles are numbers from 1 on, shifted so that they look like addresses. */
static struct heard* known(void** eHandle) {
  uint64_t n = eHandle ? (uint64_t)(uintptr_t)*eHandle >> 4 : 0;
  return n && n <= all.starts && n <= MAX_EVENTS ? &all.event[n - 1] : NULL;
}

ncclResult_t host_profiler(void** eHandle, int type, void* pHandle, int64_t pluginId, void* extData) {
  pthread_mutex_lock(&all.lock);
  struct heard* e = NULL;
  if (type == ncclProfilerNetEventStart && all.deaf) {
    all.unwanted++;
  } else if (type == ncclProfilerNetEventStart) {
    if (all.starts < MAX_EVENTS) e = &all.event[all.starts];
    all.starts++;
    all.orphans += !pHandle;
    *eHandle = (void*)(uintptr_t)(all.starts << 4);
    if (e) {
      e->parent = (uint64_t)(uintptr_t)pHandle;
      describe(e, pluginId, extData);
    }
  } else {
    e = known(eHandle);
    int update = type != ncclProfilerNetEventStop, stop = type != ncclProfilerNetEventUpdate;
    all.updates += (uint64_t)update;
    all.stops += (uint64_t)stop;
    if (e) e->stops += stop;
    if (e && update && extData) {
      struct heard now = {0};
      describe(&now, e->id, extData);
      e->last = now.length;
    }
  }
  pthread_mutex_unlock(&all.lock);
  return ncclSuccess;
}

/* Counts, and the events of the request whose parent handle is named: one number a field, lists of the same length. */
static void c_profiled(struct req* q) {
  const uint64_t parent = (uint64_t)(uintptr_t)ptr(q, "parent");
  pthread_mutex_lock(&all.lock);
  all.deaf = num(q, "deaf", all.deaf) != 0;
  out_num(q, "unwanted", (int64_t)all.unwanted);
  out_num(q, "start", (int64_t)all.starts);
  out_num(q, "stop", (int64_t)all.stops);
  out_num(q, "update", (int64_t)all.updates);
  out_num(q, "null", (int64_t)all.orphans);
  static const char* const names[] = {"id", "type", "device", "op", "qp", "wr", "length", "last", "stops"};
  for (size_t f = 0; parent && f < sizeof names / sizeof *names; f++) {
    const char* comma = "";
    text_add(&q->out, " %s=", names[f]);
    for (uint64_t i = 0; i < all.starts && i < MAX_EVENTS; i++) {
      const struct heard* e = &all.event[i];
      const int64_t value[] = {e->id,          e->type,            e->device,        e->op,    e->qp,
                               (int64_t)e->wr, (int64_t)e->length, (int64_t)e->last, e->stops};
      if (e->parent != parent) continue;
      text_add(&q->out, "%s%lld", comma, (long long)value[f]);
      comma = ",";
    }
  }
  pthread_mutex_unlock(&all.lock);
}

const struct command event_commands[] = {{"net.profiled", c_profiled}, {NULL, NULL}};
