/* What the plugins of all families share: results, element types and operations,
 * logging, kinds of memory and limits. Values are those of NCCL 2.32; none of them
 * ever changed its meaning. */
#ifndef WEFT_NCCL_COMMON_H
#define WEFT_NCCL_COMMON_H

#include <stddef.h>
#include <stdint.h>

/* What a plugin call returns. */
typedef enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,  /* a CUDA call failed */
  ncclSystemError = 2,         /* a call of this system failed */
  ncclInternalError = 3,       /* the callee or its caller is wrong */
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,        /* the user is wrong */
  ncclRemoteError = 6,         /* the peer or the way there; since 2.13 */
  ncclInProgress = 7,          /* not used by plugins */
  ncclTimeout = 8,             /* since 2.30 */
  ncclNumResults = 9
} ncclResult_t;

/* Elements of a collective. */
typedef enum {
  ncclInt8 = 0,
  ncclChar = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclInt = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclHalf = 6,
  ncclFloat32 = 7,
  ncclFloat = 7,
  ncclFloat64 = 8,
  ncclDouble = 8,
  ncclBfloat16 = 9,     /* since 2.10 */
  ncclFloat8e4m3 = 10,  /* since 2.24 */
  ncclFloat8e5m2 = 11,  /* since 2.24 */
  ncclNumTypes = 12
} ncclDataType_t;

/* How elements are combined. */
typedef enum {
  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
  ncclAvg = 4,                /* since 2.11 */
  ncclNumOps = 5,             /* from here on: made by the user */
  ncclMaxRedOp = 0x7fffffff   /* keeps the type 4 bytes wide */
} ncclRedOp_t;

/* Operations, as setNetAttr and the profiler number them. */
typedef enum {
  ncclFuncBroadcast = 0,
  ncclFuncReduce = 1,
  ncclFuncAllGather = 2,
  ncclFuncReduceScatter = 3,
  ncclFuncAllReduce = 4,
  ncclFuncSendRecv = 5,
  ncclFuncSend = 6,
  ncclFuncRecv = 7,
  ncclFuncAlltoAll = 8,
  ncclFuncScatter = 9,
  ncclFuncGather = 10,
  ncclFuncAllGatherV = 11,
  ncclFuncPutSignal = 12,
  ncclFuncSignal = 13,
  ncclFuncWaitSignal = 14,
  ncclNumFuncs = 15
} ncclFunc_t;

/* How much is logged. */
typedef enum {
  NCCL_LOG_NONE = 0,
  NCCL_LOG_VERSION = 1,
  NCCL_LOG_WARN = 2,
  NCCL_LOG_INFO = 3,
  NCCL_LOG_ABORT = 4,
  NCCL_LOG_TRACE = 5,
  NCCL_LOG_ATTN = 6     /* since 2.32; between WARN and INFO in what is shown */
} ncclDebugLogLevel;

/* What a message is about: a set. */
typedef enum {
  NCCL_INIT = 1 << 0,
  NCCL_COLL = 1 << 1,
  NCCL_P2P = 1 << 2,
  NCCL_SHM = 1 << 3,
  NCCL_NET = 1 << 4,
  NCCL_GRAPH = 1 << 5,
  NCCL_TUNING = 1 << 6,
  NCCL_ENV = 1 << 7,
  NCCL_ALLOC = 1 << 8,
  NCCL_CALL = 1 << 9,
  NCCL_PROXY = 1 << 10,
  NCCL_NVLS = 1 << 11,
  NCCL_BOOTSTRAP = 1 << 12,
  NCCL_REG = 1 << 13,
  NCCL_PROFILE = 1 << 14,
  NCCL_RAS = 1 << 15,
  NCCL_DESTROY = 1 << 16,
  NCCL_ALLOC_HOST = 1 << 17,
  NCCL_ALL = ~0
} ncclDebugLogSubSys;

/* NCCL's logger, printf-like; file is what NCCL prints as the function. */
typedef void (*ncclDebugLogger_t)(ncclDebugLogLevel level, unsigned long flags, const char* file,
                                  int line, const char* fmt, ...);

/* Kinds of memory: a set in ptrSupport, one of them in regMr. */
#define NCCL_PTR_HOST 0x1
#define NCCL_PTR_CUDA 0x2
#define NCCL_PTR_DMABUF 0x4

/* Bytes of a connection handle; 64 until version 4. */
#define NCCL_NET_HANDLE_MAXSIZE 128
#define NCCL_NET_HANDLE_MAXSIZE_V4 64

/* Requests in flight per connection, times maxRecvs; 16 until version 3, 8 until version 6. */
#define NCCL_NET_MAX_REQUESTS 32
#define NCCL_NET_MAX_REQUESTS_V3 16
#define NCCL_NET_MAX_REQUESTS_V6 8

/* Largest messages: what may be announced, and what old tables are given. */
#define NCCL_MAX_NET_SIZE_BYTES (1LL << 40)
#define MAX_NET_SIZE (1LL << 30)
#define MAX_COLLNET_SIZE (1LL << 29)

/* Values of *request when irecv is entered: completion may come early; one of several requests. */
#define NCCL_NET_OPTIONAL_RECV_COMPLETION 0x1
#define NCCL_NET_MULTI_REQUEST 0x2

/* Nothing was asked, nothing is known. */
#define NCCL_NET_TRAFFIC_CLASS_UNDEF -1
#define NCCL_NET_ATTR_UNDEF -1
#define NCCL_NET_ID_UNDEF -1

/* Of one-sided networks (GIN, RMA): flags of a registration, operations on a signal. */
#define NCCL_NET_MR_FLAG_FORCE_SO 1
#define NCCL_NET_MR_FLAG_SIGNAL_NEVER_RESET 2
#define NCCL_NET_SIGNAL_OP_INC 1
#define NCCL_NET_SIGNAL_OP_ADD 2

/* How many networks NCCL holds, its own two included. */
#define NCCL_NET_MAX_PLUGINS 16

#endif
