/* Network plugins, version 5: looked up by NCCL 2.12.7 to 2.25.1.
 * Receives come in groups and carry tags, connect and accept never block, and
 * a handle has 128 bytes instead of 64. */
#ifndef WEFT_NCCL_NET_V5_H
#define WEFT_NCCL_NET_V5_H

#include "common.h"
#include "net_v6.h"

/* A device, as 2.12 names it; from 2.13 on the tables below take version 6, its equal. */
typedef struct {
  char* name;      /* unique, for logs */
  char* pciPath;   /* in sysfs; may be NULL */
  uint64_t guid;   /* of the chip that the port sits on */
  int ptrSupport;  /* NCCL_PTR_* */
  int speed;       /* Mbit/s */
  int port;        /* number of the port */
  float latency;   /* microseconds */
  int maxComms;    /* connections it can carry */
  int maxRecvs;    /* receives in one group */
} ncclNetProperties_v5_t;

/* ncclNetPlugin_v5 */
typedef struct {
  /* What the log calls the plugin, and what NCCL_NET selects. */
  const char* name;
  /* Once per process, before anything else. */
  ncclResult_t (*init)(ncclDebugLogger_t logFunction);
  /* Number of devices; they are numbered from 0. */
  ncclResult_t (*devices)(int* ndev);
  /* Describes a device. The strings stay the plugin's. */
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v6_t* props);
  /* Opens a rendezvous and writes up to NCCL_NET_HANDLE_MAXSIZE bytes that a peer connects with. */
  ncclResult_t (*listen)(int dev, void* handle, void** listenComm);
  /* Joins the peer that wrote the handle. Never blocks: *sendComm stays NULL until it is there. */
  ncclResult_t (*connect)(int dev, void* handle, void** sendComm);
  /* Takes the next peer. Never blocks: *recvComm stays NULL until one is there. */
  ncclResult_t (*accept)(void* listenComm, void** recvComm);
  /* Makes memory of kind NCCL_PTR_* usable by a connection. */
  ncclResult_t (*regMr)(void* comm, void* data, int size, int type, void** mhandle);
  /* Undoes regMr. */
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
} ncclNet_v5_t;

/* ncclCollNetPlugin_v5 */
typedef struct {
  /* What the log calls the plugin. */
  const char* name;
  /* Once per process, before anything else. */
  ncclResult_t (*init)(ncclDebugLogger_t logFunction);
  /* Number of devices; they are numbered from 0. */
  ncclResult_t (*devices)(int* ndev);
  /* Describes a device. The strings stay the plugin's. */
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v6_t* props);
  /* Opens a rendezvous and writes up to NCCL_NET_HANDLE_MAXSIZE bytes that a peer connects with. */
  ncclResult_t (*listen)(int dev, void* handle, void** listenComm);
  /* Builds the group out of the handles of all ranks. */
  ncclResult_t (*connect)(void* handles[], int nranks, int rank, void* listenComm, void** collComm);
  /* Whether this type and operation can be reduced. */
  ncclResult_t (*reduceSupport)(ncclDataType_t dataType, ncclRedOp_t redOp, int* supported);
  /* Makes memory of kind NCCL_PTR_* usable by a connection. */
  ncclResult_t (*regMr)(void* collComm, void* data, int size, int type, void** mhandle);
  /* Undoes regMr. */
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
} ncclCollNet_v5_t;

#endif
