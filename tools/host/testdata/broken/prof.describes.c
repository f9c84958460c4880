/* prof.describes: an event says half of the bytes of its send. */
#define TABLES 1 << 12
#include "../good.c"
#include "profiler_net.h"

static ncclProfilerCallback_t profiler;
static ncclResult_t init(void **ctx, uint64_t id, ncclNetCommConfig_v12_t *g, ncclDebugLogger_t log, ncclProfilerCallback_t prof) { return profiler = prof, init12(ctx, id, g, log, prof); }
static int bad(void *comm, void *data, size_t size, int tag, void *mh, void *ph, void **req) {
  void *event = NULL;
  int rc = good_isend(comm, data, size, tag, mh, ph, req);
  ncclProfilerNetSockDescr_v1_t what = {.type = ncclProfileSocket, .sock = {.length = size / 2}};
  if (*req && profiler && ph) profiler(&event, 0, ph, 0x20001, &what), profiler(&event, 1, ph, 0x20001, NULL);
  return rc;
}
__attribute__((constructor)) static void spoil(void) { core.isend = bad, ncclNetPlugin_v12.init = init; }
