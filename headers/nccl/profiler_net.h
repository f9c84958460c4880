/* Events that a network plugin reports to the profiler, through the callback that
 * it is given from version 10 on. */
#ifndef WEFT_NCCL_PROFILER_NET_H
#define WEFT_NCCL_PROFILER_NET_H

#include "common.h"

/* What the callback is told about an event; NCCL 2.26 takes all but the first for a stop. */
enum {
  ncclProfilerNetEventStart = 0,
  ncclProfilerNetEventStop = 1,
  ncclProfilerNetEventUpdate = 2,
  ncclProfilerNetEventUpdateAndStop = 3
};

/* Starts, updates and stops an event under pHandle, the phandle of the request. */
typedef ncclResult_t (*ncclProfilerCallback_t)(void** eHandle, int type, void* pHandle,
                                               int64_t pluginId, void* extData);

/* pluginId: the kind of network in the upper bits, the version of its descriptors in the lower. */
#define NCCL_PROFILER_NET_VER_BITS 16
#define NCCL_PROFILER_NET_VER_MASK 0x0000ffffU
#define NCCL_PROFILER_NET_TYPE_MASK 0xffff0000U

typedef enum {
  NCCL_PROFILER_NET_TYPE_IB = 0x10000,
  NCCL_PROFILER_NET_TYPE_SOCK = 0x20000
} ncclProfilerNetType;

#define NCCL_PROFILER_NET_IB_VER 1

/* type of the descriptor below. */
enum {
  ncclProfileQp = 1
};

/* Work on a queue pair. */
typedef struct {
  uint8_t type;
  union {
    struct {
      int device;
      uint64_t wr_id;
      int opcode;
      int qpNum;
      size_t length;
    } qp;
  };
} ncclProfilerNetIbDescr_v1_t;

#define NCCL_PROFILER_NET_SOCKET_VER 1

/* type of the descriptor below. */
enum {
  ncclProfileSocket = 1
};

/* A transfer on a socket. */
typedef struct {
  uint8_t type;
  union {
    struct {
      int fd;
      int op;
      size_t length;
    } sock;
  };
} ncclProfilerNetSockDescr_v1_t;

#endif
