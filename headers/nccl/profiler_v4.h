/* Profiler plugin, version 4: looked up by NCCL 2.27.3 and later.
 * The communicator describes itself once, at init, instead of in every event;
 * states carry their own small arguments. */
#ifndef WEFT_NCCL_PROFILER_V4_H
#define WEFT_NCCL_PROFILER_V4_H

#include "common.h"
#include "profiler_event.h"

/* What is known when an event begins; type says which member of the union counts. */
typedef struct {
  uint8_t type;
  void* parentObj;
  int rank;
  union {
    struct { /* a collective, seen by the host */
      uint64_t seqNumber;
      const char* func;
      const void* sendBuff;
      void* recvBuff;
      size_t count;
      int root;
      const char* datatype;
      uint8_t nChannels;
      uint8_t nWarps;
      const char* algo;
      const char* proto;
    } coll;
    struct { /* a send or a receive, seen by the host */
      const char* func;
      void* buff;
      const char* datatype;
      size_t count;
      int peer;
      uint8_t nChannels;
    } p2p;
    struct { /* its share of one channel, on the proxy thread */
      ncclPid_t pid;
      uint8_t channelId;
      int peer;
      int nSteps;
      int chunkSize;
      int isSend;
    } proxyOp;
    struct { /* one step of that */
      int step;
    } proxyStep;
    struct { /* one channel on the GPU */
      uint8_t channelId;
      uint64_t pTimer;
    } kernelCh;
    struct { /* reported by the network plugin */
      int64_t id;
      void* data;
    } netPlugin;
  };
} ncclProfilerEventDescr_v4_t;

typedef ncclProfilerEventState_t ncclProfilerEventState_v4_t;

/* What comes with a state. */
typedef union {
  struct { /* one step of that */
    size_t transSize;
  } proxyStep;
  struct { /* the proxy thread itself */
    int appendedProxyOps;
  } proxyCtrl;
  struct { /* reported by the network plugin */
    void* data;
  } netPlugin;
  struct { /* one channel on the GPU */
    uint64_t pTimer;
  } kernelCh;
} ncclProfilerEventStateArgs_v4_t;

/* ncclProfiler_v4 */
typedef struct {
  /* What the log calls the plugin. */
  const char* name;
  /* Called for every communicator, with its name and shape; the plugin sets the mask of the events it wants. */
  ncclResult_t (*init)(void** context, int* eActivationMask, const char* commName,
                       uint64_t commHash, int nNodes, int nranks, int rank,
                       ncclDebugLogger_t logfn);
  /* Begins an event of eDescr->type; *eHandle is what later calls and children name it by. */
  ncclResult_t (*startEvent)(void* context, void** eHandle, ncclProfilerEventDescr_v4_t* eDescr);
  /* The work of the event is over, or, for what runs on the GPU, has been queued. */
  ncclResult_t (*stopEvent)(void* eHandle);
  /* The event has entered another state. */
  ncclResult_t (*recordEventState)(void* eHandle, ncclProfilerEventState_v4_t eState,
                                   ncclProfilerEventStateArgs_v4_t* eStateArgs);
  /* The communicator goes; no event of it follows. */
  ncclResult_t (*finalize)(void* context);
} ncclProfiler_v4_t;

#endif
