/* Network plugin, version 2: looked up by NCCL 2.4.2 to 2.5.7.
 * The first table that NCCL looks up in a library: memory is registered, and
 * the device is described by two functions, whose path the caller frees. */
#ifndef WEFT_NCCL_NET_V2_H
#define WEFT_NCCL_NET_V2_H

#include "common.h"

/* ncclNetPlugin_v2 */
typedef struct {
  /* What the log calls the plugin, and what NCCL_NET selects. */
  const char* name;
  /* Once per process, before anything else. */
  ncclResult_t (*init)(ncclDebugLogger_t logFunction);
  /* Number of devices; they are numbered from 0. */
  ncclResult_t (*devices)(int* ndev);
  /* sysfs path of the device; the caller frees it. */
  ncclResult_t (*pciPath)(int dev, char** path);
  /* Memory the device can reach: a set of NCCL_PTR_*. */
  ncclResult_t (*ptrSupport)(int dev, int* supportedTypes);
  /* Opens a rendezvous and writes up to NCCL_NET_HANDLE_MAXSIZE_V4 bytes that a peer connects with. */
  ncclResult_t (*listen)(int dev, void* handle, void** listenComm);
  /* Joins the peer that wrote the handle. May block. */
  ncclResult_t (*connect)(int dev, void* handle, void** sendComm);
  /* Takes the next peer. May block. */
  ncclResult_t (*accept)(void* listenComm, void** recvComm);
  /* Makes memory of kind NCCL_PTR_* usable by a connection. */
  ncclResult_t (*regMr)(void* comm, void* data, int size, int type, void** mhandle);
  /* Undoes regMr. */
  ncclResult_t (*deregMr)(void* comm, void* mhandle);
  /* Starts a send. *request NULL: not now, call again. */
  ncclResult_t (*isend)(void* sendComm, void* data, int size, void* mhandle, void** request);
  /* Starts a receive of at most size bytes. *request NULL: not now, call again. */
  ncclResult_t (*irecv)(void* recvComm, void* data, int size, void* mhandle, void** request);
  /* Returns when data received into GPU memory is visible there. */
  ncclResult_t (*flush)(void* recvComm, void* data, int size, void* mhandle);
  /* Polls a request; when done, its size is stored unless the pointer is NULL. */
  ncclResult_t (*test)(void* request, int* done, int* size);
  /* Closes the sending side. */
  ncclResult_t (*closeSend)(void* sendComm);
  /* Closes the receiving side. */
  ncclResult_t (*closeRecv)(void* recvComm);
  /* Closes the rendezvous. */
  ncclResult_t (*closeListen)(void* listenComm);
} ncclNet_v2_t;

#endif
