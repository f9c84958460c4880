// What the player takes from the NCCL tree that it is compiled for, and what changed from release to release.
#pragma once
#if __has_include("device.h")
#include "device.h"
#else
#include "devcomm.h"
#endif
#if __has_include("collectives.h")
#include "collectives.h"
#else
#include "collectives/collectives.h"  // 2.4, where headers do not include what they need
#include "core.h"
#endif
#include "comm.h"
#include "simcuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>

#define SINCE(major, minor) (NCCL_VERSION_CODE >= NCCL_VERSION(major, minor, 0))

// The shape of a kernel's arguments, which the makefile finds out.
#define WORK_BATCHES 0  // since 2.22: batches of works, cut into channels by the host
#define WORK_LISTS 1    // 2.20 and 2.21: lists of ncclWork with the channel's part of each
#define WORK_UNCUT 2    // 2.13 to 2.19: lists of ncclWork that the kernel cuts
#define WORK_FIFO 3     // up to 2.12: the first work itself, and a fifo of others for each channel; the kernel cuts them
#define HOST_CUTS (WORK == WORK_BATCHES || WORK == WORK_LISTS)

// Names that older releases lack.
#ifndef NCCL_P2P_READ
#define NCCL_P2P_WRITE 0x01
#define NCCL_P2P_READ 0x02
#endif
#if !SINCE(2, 5)  // where the kernels' names have them, as a flag each
#define NCCL_NUM_ALGORITHMS 2
#define NCCL_ALGO_RING 0
#define NCCL_ALGO_TREE 1
#define NCCL_NUM_PROTOCOLS 2
#define NCCL_PROTO_SIMPLE 0
#define NCCL_PROTO_LL 1
#define NCCL_PROTO_LL128 -1
#endif
#ifndef NCCL_ALGO_COLLNET_DIRECT
#define NCCL_ALGO_COLLNET_DIRECT NCCL_ALGO_RING
#endif
#ifndef NCCL_ALGO_NVLS
#define NCCL_ALGO_NVLS NCCL_ALGO_RING
#endif
#ifndef NCCL_ALGO_PAT
#define NCCL_ALGO_PAT NCCL_ALGO_NVLS
#endif
#ifndef NCCL_MAX_NET_SIZE
#define NCCL_MAX_NET_SIZE (1024 * 1024 * 1024L)
#endif
#ifndef NCCL_DIRECT_NIC
#define NCCL_DIRECT_NIC 0
#endif

namespace simgpu {
#if !SINCE(2, 19)
constexpr int ncclDevMinMax = -1;  // there a minimum and a maximum are operations of their own, which are not played
#endif
#if !SINCE(2, 11)
constexpr int ncclDevSum = ncclSum, ncclDevProd = ncclProd, ncclDevPreMulSum = -2, ncclDevSumPostDiv = -3, ncclNumDevRedOps = ncclNumOps;
#endif
#if !SINCE(2, 10)
constexpr ncclDataType_t ncclBfloat16 = (ncclDataType_t)9;
#endif
#if !SINCE(2, 8)
constexpr int ncclFuncBroadcast = ncclCollBroadcast, ncclFuncReduce = ncclCollReduce, ncclFuncAllGather = ncclCollAllGather,
              ncclFuncReduceScatter = ncclCollReduceScatter, ncclFuncAllReduce = ncclCollAllReduce;
#if SINCE(2, 7)
constexpr int ncclFuncSendRecv = ncclCollSendRecv;
#else
constexpr int ncclFuncSendRecv = -1;
#endif
#endif

// GET(x, field): the field, or 0 where the release has none of that name.
#define FIELD(name)                                                                        \
  template <typename T> auto get_##name(const T& t, int) -> decltype(t.name + 0) { return t.name; } \
  template <typename T> int get_##name(const T&, long) { return 0; }
FIELD(netRegUsed) FIELD(isOneRPN) FIELD(sendNetReg) FIELD(recvNetReg) FIELD(sendRegistered) FIELD(recvRegistered)
FIELD(reg) FIELD(profilerEnabled) FIELD(p2pChunkSize) FIELD(flags) FIELD(sendIpcReg) FIELD(recvIpcReg) FIELD(stepSize)
#undef FIELD
#define GET(x, name) get_##name(x, 0)

#if WORK == WORK_BATCHES
typedef std::remove_pointer_t<decltype(ncclDevKernelArgs::comm)> DevComm;
#else
typedef ncclDevComm DevComm;
#endif

// What a kernel of this number does.
struct Function {
  int coll = -1, op = 0, type = 0, algo = 0, proto = 0;
};

// Better no result than a wrong one.
[[noreturn]] inline void unplayed(const char* what) {
  fprintf(stderr, "simgpu: %s is not played\n", what);
  abort();
}

inline int64_t divup(int64_t a, int64_t b) { return (a + b - 1) / b; }

inline int typeSize(int type) {
  switch (type) {
    case ncclFloat16: case ncclBfloat16: return 2;
    case ncclInt32: case ncclUint32: case ncclFloat32: return 4;
    case ncclInt64: case ncclUint64: case ncclFloat64: return 8;
    default: return 1;
  }
}
}  // namespace simgpu
