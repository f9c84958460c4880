/* Network plugins, version 7: looked up by NCCL 2.19.1 and later.
 * A connection may hand out a device handle: data that device code unpacks. */
#ifndef WEFT_NCCL_NET_V7_H
#define WEFT_NCCL_NET_V7_H

#include "common.h"
#include "net_device.h"

/* A device. */
typedef struct {
  char* name;                       /* unique, for logs */
  char* pciPath;                    /* in sysfs; may be NULL */
  uint64_t guid;                    /* of the chip that the port sits on */
  int ptrSupport;                   /* NCCL_PTR_* */
  int speed;                        /* Mbit/s */
  int port;                         /* number of the port */
  float latency;                    /* microseconds */
  int maxComms;                     /* connections it can carry */
  int maxRecvs;                     /* receives in one group */
  ncclNetDeviceType netDeviceType;  /* who moves the data */
  int netDeviceVersion;             /* of the interface to that */
} ncclNetProperties_v7_t;

/* ncclNetPlugin_v7 */
typedef struct {
  /* What the log calls the plugin, and what NCCL_NET selects. */
  const char* name;
  /* Once per process, before anything else. */
  ncclResult_t (*init)(ncclDebugLogger_t logFunction);
  /* Number of devices; they are numbered from 0. */
  ncclResult_t (*devices)(int* ndev);
  /* Describes a device. The strings stay the plugin's. */
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v7_t* props);
  /* Opens a rendezvous and writes up to NCCL_NET_HANDLE_MAXSIZE bytes that a peer connects with. */
  ncclResult_t (*listen)(int dev, void* handle, void** listenComm);
  /* Joins the peer that wrote the handle. Never blocks: *sendComm stays NULL until it is there. */
  ncclResult_t (*connect)(int dev, void* handle, void** sendComm,
                          ncclNetDeviceHandle_v7_t** sendDevComm);
  /* Takes the next peer. Never blocks: *recvComm stays NULL until one is there. */
  ncclResult_t (*accept)(void* listenComm, void** recvComm, ncclNetDeviceHandle_v7_t** recvDevComm);
  /* Makes memory of kind NCCL_PTR_* usable by a connection. */
  ncclResult_t (*regMr)(void* comm, void* data, int size, int type, void** mhandle);
  /* The same for memory behind a DMA-BUF. May be NULL. */
  ncclResult_t (*regMrDmaBuf)(void* comm, void* data, size_t size, int type, uint64_t offset,
                              int fd, void** mhandle);
  /* Undoes regMr and regMrDmaBuf. */
  ncclResult_t (*deregMr)(void* comm, void* mhandle);
  /* Starts a send. *request NULL: not now, call again. */
  ncclResult_t (*isend)(void* sendComm, void* data, int size, int tag, void* mhandle,
                        void** request);
  /* Starts n receives that complete together, matched by tag. *request NULL: not now. */
  ncclResult_t (*irecv)(void* recvComm, int n, void** data, int* sizes, int* tags, void** mhandles,
                        void** request);
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
} ncclNet_v7_t;

/* ncclCollNetPlugin_v7 */
typedef struct {
  /* What the log calls the plugin. */
  const char* name;
  /* Once per process, before anything else. */
  ncclResult_t (*init)(ncclDebugLogger_t logFunction);
  /* Number of devices; they are numbered from 0. */
  ncclResult_t (*devices)(int* ndev);
  /* Describes a device. The strings stay the plugin's. */
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v7_t* props);
  /* Opens a rendezvous and writes up to NCCL_NET_HANDLE_MAXSIZE bytes that a peer connects with. */
  ncclResult_t (*listen)(int dev, void* handle, void** listenComm);
  /* Builds the group out of the handles of all ranks. */
  ncclResult_t (*connect)(void* handles[], int nranks, int rank, void* listenComm, void** collComm);
  /* Whether this type and operation can be reduced. */
  ncclResult_t (*reduceSupport)(ncclDataType_t dataType, ncclRedOp_t redOp, int* supported);
  /* Makes memory of kind NCCL_PTR_* usable by a connection. */
  ncclResult_t (*regMr)(void* collComm, void* data, int size, int type, void** mhandle);
  /* The same for memory behind a DMA-BUF. May be NULL. */
  ncclResult_t (*regMrDmaBuf)(void* collComm, void* data, size_t size, int type, uint64_t offset,
                              int fd, void** mhandle);
  /* Undoes regMr and regMrDmaBuf. */
  ncclResult_t (*deregMr)(void* collComm, void* mhandle);
  /* Starts reducing count elements into recvData of every rank. */
  ncclResult_t (*iallreduce)(void* collComm, void* sendData, void* recvData, int count,
                             ncclDataType_t dataType, ncclRedOp_t redOp, void* sendMhandle,
                             void* recvMhandle, void** request);
  /* Starts making data received into GPU memory visible there. *request NULL: nothing to do. */
  ncclResult_t (*iflush)(void* collComm, void* data, int size, void* mhandle, void** request);
  /* Polls a request; when done, its size is stored unless the pointer is NULL. */
  ncclResult_t (*test)(void* request, int* done, int* size);
  /* Leaves the group. */
  ncclResult_t (*closeColl)(void* collComm);
  /* Closes the rendezvous. */
  ncclResult_t (*closeListen)(void* listenComm);
} ncclCollNet_v7_t;

#endif
