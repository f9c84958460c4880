/* Profiler plugin, version 7: looked up by NCCL 2.31.2 and later.
 * A call carries a tag of the user's, 0 for none; the phases of a symmetric kernel are events. */
#ifndef WEFT_NCCL_PROFILER_V7_H
#define WEFT_NCCL_PROFILER_V7_H

#include "common.h"
#include "profiler_event.h"
#include "profiler_v6.h"

typedef ncclProfilerEventState_t ncclProfilerEventState_v7_t;

/* What is known when an event begins; type says which member of the union counts. */
typedef struct {
  uint64_t type;
  void* parentObj;
  int rank;
  union {
    struct { /* ncclGroupStart to ncclGroupEnd */
      bool graphCaptured;
      int groupDepth;
    } groupApi;
    struct { /* the call of a collective */
      const char* func;
      size_t count;
      const char* datatype;
      int root;
      void* stream;
      bool graphCaptured;
      uint64_t userTag;
    } collApi;
    struct { /* the call of a send or a receive */
      const char* func;
      size_t count;
      const char* datatype;
      void* stream;
      bool graphCaptured;
      uint64_t userTag;
    } p2pApi;
    struct {
      void* stream;
    } kernelLaunch;
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
      void* parentGroup;
      const char* kernelVariant;
      bool isSymColl;
      uint64_t userTag;
    } coll;
    struct { /* a send or a receive, seen by the host */
      const char* func;
      void* buff;
      const char* datatype;
      size_t count;
      int peer;
      uint8_t nChannels;
      void* parentGroup;
      uint64_t userTag;
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
    struct { /* a collective done by copy engines */
      uint64_t seqNumber;
      const char* func;
      const void* sendBuff;
      void* recvBuff;
      size_t count;
      int root;
      const char* datatype;
      const char* syncStrategy;
      bool intraBatchSync;
      uint32_t batchSize;
      uint32_t numBatches;
      uint32_t ceSeqNum;
      void* stream;
      uint64_t userTag;
    } ceColl;
    struct { /* its synchronisation */
      bool isComplete;
      int nRanks;
    } ceCollSync;
    struct { /* a batch of its copies */
      int numOps;
      size_t totalBytes;
      bool useIntraSync;
    } ceCollBatch;
    struct { /* a phase of a kernel: until the ranks are in step, its work, until they are again */
      uint8_t channelId;
      uint8_t phaseId; /* 0 initial_sync, 1 compute, 2 final_sync; phaseName says so too */
      const char* phaseName;
      uint64_t pTimer;
    } kernelPhase;
  };
} ncclProfilerEventDescr_v7_t;

/* The end of a kernelPhase comes as kernelCh. */
typedef ncclProfilerEventStateArgs_v6_t ncclProfilerEventStateArgs_v7_t;

/* ncclProfiler_v7 */
typedef struct {
  /* What the log calls the plugin. */
  const char* name;
  /* Called for every communicator, with its name and shape; the plugin sets the mask of the events it wants. */
  ncclResult_t (*init)(void** context, uint64_t commId, int* eActivationMask, const char* commName,
                       int nNodes, int nranks, int rank, ncclDebugLogger_t logfn);
  /* Begins an event of eDescr->type; *eHandle is what later calls and children name it by. */
  ncclResult_t (*startEvent)(void* context, void** eHandle, ncclProfilerEventDescr_v7_t* eDescr);
  /* The work of the event is over, or, for what runs on the GPU, has been queued. */
  ncclResult_t (*stopEvent)(void* eHandle);
  /* The event has entered another state. */
  ncclResult_t (*recordEventState)(void* eHandle, ncclProfilerEventState_v7_t eState,
                                   ncclProfilerEventStateArgs_v7_t* eStateArgs);
  /* The communicator goes; no event of it follows. */
  ncclResult_t (*finalize)(void* context);
} ncclProfiler_v7_t;

#endif
