/* Network plugins, version 12: looked up by NCCL 2.30.3 and later.
 * A virtual device joins up to eight devices; properties name rail and plane. */
#ifndef WEFT_NCCL_NET_V12_H
#define WEFT_NCCL_NET_V12_H

#include "common.h"
#include "net_device.h"
#include "profiler_net.h"

/* Devices that one virtual device may join. */
#define NCCL_NET_MAX_DEVS_PER_NIC_V12 8

/* The devices that a virtual device is made of. */
typedef struct {
  int ndevs;  /* how many of devs count */
  int devs[NCCL_NET_MAX_DEVS_PER_NIC_V12];
} ncclNetVDeviceProps_v12_t;

/* What the user asked of a communicator. */
typedef struct {
  int trafficClass;  /* or NCCL_NET_TRAFFIC_CLASS_UNDEF */
} ncclNetCommConfig_v12_t;

/* A device. */
typedef struct {
  char* name;                        /* unique, for logs */
  char* pciPath;                     /* in sysfs; may be NULL */
  uint64_t guid;                     /* of the chip that the port sits on */
  int ptrSupport;                    /* NCCL_PTR_* */
  int regIsGlobal;                   /* a registration serves every connection */
  int forceFlush;                    /* flush after every receive */
  int speed;                         /* Mbit/s */
  int port;                          /* number of the port */
  float latency;                     /* microseconds */
  int maxComms;                      /* connections it can carry */
  int maxRecvs;                      /* receives in one group */
  ncclNetDeviceType netDeviceType;   /* who moves the data */
  int netDeviceVersion;              /* of the interface to that */
  ncclNetVDeviceProps_v12_t vProps;  /* devices it is made of */
  size_t maxP2pBytes;                /* largest message */
  size_t maxCollBytes;               /* largest collective */
  int maxMultiRequestSize;           /* requests in one */
  int16_t railId;                    /* rail of the fabric, -1 unknown */
  int16_t planeId;                   /* plane of the fabric, -1 unknown */
} ncclNetProperties_v12_t;

/* Bounds on the traffic of one direction; NCCL_NET_ATTR_UNDEF where unknown. */
typedef struct {
  int32_t maxConcurrentPeers;  /* peers that are talked to at a time */
  int32_t minConcurrentPeers;
  int32_t maxFlowsPerPeer;     /* connections per peer */
  int32_t minFlowsPerPeer;
} ncclNetCommAttr_v12_t;

/* What the communicator is about to do. */
typedef struct {
  ncclNetCommAttr_v12_t sendCommAttr;
  ncclNetCommAttr_v12_t recvCommAttr;
  uint32_t op;     /* set of ncclFunc_t */
  uint32_t algo;   /* set of algorithms */
  uint32_t proto;  /* set of protocols */
} ncclNetAttr_v12_t;

/* ncclNetPlugin_v12 */
typedef struct {
  /* What the log calls the plugin, and what NCCL_NET selects. */
  const char* name;
  /* Once per communicator; *ctx is what listen, connect and finalize get back. */
  ncclResult_t (*init)(void** ctx, uint64_t commId, ncclNetCommConfig_v12_t* config,
                       ncclDebugLogger_t logFunction, ncclProfilerCallback_t profFunction);
  /* Number of devices; they are numbered from 0. */
  ncclResult_t (*devices)(int* ndev);
  /* Describes a device. The strings stay the plugin's. */
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v12_t* props);
  /* Opens a rendezvous and writes up to NCCL_NET_HANDLE_MAXSIZE bytes that a peer connects with. */
  ncclResult_t (*listen)(void* ctx, int dev, void* handle, void** listenComm);
  /* Joins the peer that wrote the handle. Never blocks: *sendComm stays NULL until it is there. */
  ncclResult_t (*connect)(void* ctx, int dev, void* handle, void** sendComm,
                          ncclNetDeviceHandle_v12_t** sendDevComm);
  /* Takes the next peer. Never blocks: *recvComm stays NULL until one is there. */
  ncclResult_t (*accept)(void* listenComm, void** recvComm,
                         ncclNetDeviceHandle_v12_t** recvDevComm);
  /* Makes memory of kind NCCL_PTR_* usable by a connection. */
  ncclResult_t (*regMr)(void* comm, void* data, size_t size, int type, void** mhandle);
  /* The same for memory behind a DMA-BUF. May be NULL. */
  ncclResult_t (*regMrDmaBuf)(void* comm, void* data, size_t size, int type, uint64_t offset,
                              int fd, void** mhandle);
  /* Undoes regMr and regMrDmaBuf. */
  ncclResult_t (*deregMr)(void* comm, void* mhandle);
  /* Starts a send. *request NULL: not now, call again. */
  ncclResult_t (*isend)(void* sendComm, void* data, size_t size, int tag, void* mhandle,
                        void* phandle, void** request);
  /* Starts n receives that complete together, matched by tag. *request NULL: not now;
   * *request NCCL_NET_OPTIONAL_RECV_COMPLETION on entry: nobody waits for the data. */
  ncclResult_t (*irecv)(void* recvComm, int n, void** data, size_t* sizes, int* tags,
                        void** mhandles, void** phandles, void** request);
  /* Starts making data received into GPU memory visible there. *request NULL: nothing to do. */
  ncclResult_t (*iflush)(void* recvComm, int n, void** data, int* sizes, void** mhandles,
                         void** request);
  /* Polls a request; when done, the sizes are stored unless the pointer is NULL. */
  ncclResult_t (*test)(void* request, int* done, int* sizes);
  /* Closes the sending side. */
  ncclResult_t (*closeSend)(void* sendComm);
  /* Closes the receiving side. */
  ncclResult_t (*closeRecv)(void* recvComm);
  /* Closes the rendezvous. */
  ncclResult_t (*closeListen)(void* listenComm);
  /* Registration in the form that device code of this plugin takes. May be NULL. */
  ncclResult_t (*getDeviceMr)(void* comm, void* mhandle, void** dptr_mhandle);
  /* Device code has taken a received message. May be NULL. */
  ncclResult_t (*irecvConsumed)(void* recvComm, int n, void* request);
  /* Joins devices into a new one, whose number is stored. May be NULL. */
  ncclResult_t (*makeVDevice)(int* d, ncclNetVDeviceProps_v12_t* props);
  /* Releases the context of a communicator. */
  ncclResult_t (*finalize)(void* ctx);
  /* Hints about what the communicator will do next. May be NULL. */
  ncclResult_t (*setNetAttr)(void* ctx, ncclNetAttr_v12_t* netAttr);
} ncclNet_v12_t;

/* A piece of memory of a gather or a scatter. */
typedef struct {
  void* mhandle;
  void* address;
  size_t size;
} ncclNetSGE_v12_t;

/* ncclCollNetPlugin_v12 */
typedef struct {
  /* What the log calls the plugin. */
  const char* name;
  /* Once per communicator; *ctx is what listen and finalize get back. */
  ncclResult_t (*init)(void** ctx, uint64_t commId, ncclDebugLogger_t logFunction);
  /* Number of devices; they are numbered from 0. */
  ncclResult_t (*devices)(int* ndev);
  /* Describes a device. The strings stay the plugin's. */
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v12_t* props);
  /* Opens a rendezvous and writes up to NCCL_NET_HANDLE_MAXSIZE bytes that a peer connects with. */
  ncclResult_t (*listen)(void* ctx, int dev, void* handle, void** listenComm);
  /* Builds the group out of the handles of all ranks. */
  ncclResult_t (*connect)(void* handles[], int nranks, int rank, void* listenComm, void** collComm);
  /* Whether this type and operation can be reduced. */
  ncclResult_t (*reduceSupport)(ncclDataType_t dataType, ncclRedOp_t redOp, int* supported);
  /* Makes memory of kind NCCL_PTR_* usable by a connection. */
  ncclResult_t (*regMr)(void* collComm, void* data, size_t size, int type, void** mhandle);
  /* The same for memory behind a DMA-BUF. May be NULL. */
  ncclResult_t (*regMrDmaBuf)(void* collComm, void* data, size_t size, int type, uint64_t offset,
                              int fd, void** mhandle);
  /* Undoes regMr and regMrDmaBuf. */
  ncclResult_t (*deregMr)(void* collComm, void* mhandle);
  /* Starts reducing count elements into recvData of every rank. */
  ncclResult_t (*iallreduce)(void* collComm, void* sendData, void* recvData, size_t count,
                             ncclDataType_t dataType, ncclRedOp_t redOp, void* sendMhandle,
                             void* recvMhandle, void** request);
  /* Starts gathering a window of bytesPerRank from every rank. */
  ncclResult_t (*iallgather)(void* collComm, void* sendData, int nRecvParts,
                             ncclNetSGE_v12_t* recvParts, size_t bytesPerRank, size_t windowOffset,
                             size_t windowBytes, void* sendMhandle, void** request);
  /* Starts reducing and scattering a window of bytesPerRank. */
  ncclResult_t (*ireducescatter)(void* collComm, int nSendParts, ncclNetSGE_v12_t* sendParts,
                                 void* recvData, size_t bytesPerRank, size_t windowOffset,
                                 size_t windowBytes, ncclDataType_t dataType, ncclRedOp_t redOp,
                                 void* recvMhandle, void** request);
  /* Starts making data received into GPU memory visible there. *request NULL: nothing to do. */
  ncclResult_t (*iflush)(void* collComm, void* data, int size, void* mhandle, void** request);
  /* Polls a request; when done, its size is stored unless the pointer is NULL. */
  ncclResult_t (*test)(void* request, int* done, int* size);
  /* Leaves the group. */
  ncclResult_t (*closeColl)(void* collComm);
  /* Closes the rendezvous. */
  ncclResult_t (*closeListen)(void* listenComm);
  /* Joins devices into a new one, whose number is stored. May be NULL. */
  ncclResult_t (*makeVDevice)(int* d, ncclNetVDeviceProps_v12_t* props);
  /* Releases the context of a communicator. */
  ncclResult_t (*finalize)(void* ctx);
} ncclCollNet_v12_t;

#endif
