/* Profiler plugin, version 1: looked up by NCCL 2.23.4 and later.
 * Functions, types and algorithms are codes. */
#ifndef WEFT_NCCL_PROFILER_V1_H
#define WEFT_NCCL_PROFILER_V1_H

#include "common.h"
#include "profiler_event.h"

/* What is known when an event begins; type says which member of the union counts. */
typedef struct {
  uint8_t type;
  void* parentObj;
  int rank;
  union {
    struct { /* a collective, seen by the host */
      const char* name;
      uint64_t commHash;
      uint64_t seqNumber;
      uint8_t func;
      const void* sendBuff;
      void* recvBuff;
      size_t count;
      int root;
      uint8_t datatype;
      uint32_t op;
      size_t trafficBytes;
      uint8_t nMaxChannels;
      uint8_t nWarps;
      uint8_t algo;
      uint8_t proto;
      int isCollnet;
      int isNvls;
    } coll;
    struct { /* a send or a receive, seen by the host */
      const char* name;
      uint64_t commHash;
      uint8_t func;
      void* buff;
      uint8_t datatype;
      size_t count;
      int peer;
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
  };
} ncclProfilerEventDescr_v1_t;

typedef ncclProfilerEventState_t ncclProfilerEventState_v1_t;

/* What comes with a state. */
typedef union {
  struct { /* its share of one channel, on the proxy thread */
    size_t transSize;
    int steps;
  } proxyOp;
  struct { /* the proxy thread itself */
    int appendedProxyOps;
  } proxyCtrl;
} ncclProfilerEventStateArgs_v1_t;

/* ncclProfiler_v1 */
typedef struct {
  /* What the log calls the plugin. */
  const char* name;
  /* Called for every communicator; the plugin sets the mask of the events it wants. */
  ncclResult_t (*init)(void** context, int* eActivationMask);
  /* Begins an event of eDescr->type; *eHandle is what later calls and children name it by. */
  ncclResult_t (*startEvent)(void* context, void** eHandle, ncclProfilerEventDescr_v1_t* eDescr);
  /* The work of the event is over, or, for what runs on the GPU, has been queued. */
  ncclResult_t (*stopEvent)(void* eHandle);
  /* The event has entered another state. */
  ncclResult_t (*recordEventState)(void* eHandle, ncclProfilerEventState_v1_t eState,
                                   ncclProfilerEventStateArgs_v1_t* eStateArgs);
  /* The communicator goes; no event of it follows. */
  ncclResult_t (*finalize)(void* context);
} ncclProfiler_v1_t;

#endif
