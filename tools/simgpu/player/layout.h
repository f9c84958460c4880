// Where a release keeps what a channel and its connections have.
#pragma once
#include "nccl.h"

namespace simgpu {
#if WORK == WORK_FIFO
typedef ncclChannel Channel;
inline const int* order(const ncclRing& r) { return r.devUserRanks; }

inline ncclConnInfo* connection(Channel* c, int peer, bool recv, int index) {
  ncclPeer& p = c->devPeers[peer];
#if SINCE(2, 9)
  return &(recv ? p.recv : p.send)[index].conn;
#else
  return &(recv ? p.recv : p.send).conn;
#endif
}
#else
typedef ncclDevChannel Channel;
inline const int* order(const ncclRing& r) { return r.userRanks; }

// Up to 2.15 the peers of a channel are an array, then an array of pointers.
inline ncclDevChannelPeer& peer(ncclDevChannelPeer** peers, int i) { return *peers[i]; }
inline ncclDevChannelPeer& peer(ncclDevChannelPeer* peers, int i) { return peers[i]; }

inline ncclConnInfo* connection(Channel* c, int i, bool recv, int index) {
  ncclDevChannelPeer& p = peer(c->peers, i);
  return &(recv ? p.recv : p.send)[index];
}
#endif

// The buffer of a protocol, which NCCL_STEPS slots share.
#if SINCE(2, 7)
inline int64_t bufferBytes(const DevComm* comm, const Channel*, int proto) { return comm->buffSizes[proto]; }
inline char* buffer(const ncclConnInfo* c, int proto) { return c->buffs[proto]; }
#else
inline int64_t bufferBytes(const DevComm*, const Channel* c, int proto) {
#if SINCE(2, 5)
  if (proto == NCCL_PROTO_LL128) return NCCL_LL128_BUFF_SIZE;
#endif
  return proto == NCCL_PROTO_LL ? (int64_t)NCCL_LL_BUFF_SIZE : c->buffSize;
}
inline char* buffer(const ncclConnInfo* c, int proto) {
#if SINCE(2, 5)
  if (proto == NCCL_PROTO_LL128) return (char*)c->ll128Buff;
#endif
  return proto == NCCL_PROTO_LL ? (char*)c->llBuff : c->buff;
}
#endif

// What the two sides of a connection tell one another beside the counters: sizes of slots, and where they are.
#if HOST_CUTS
struct Fifo {
  ncclConnFifo* f;
  explicit Fifo(ncclConnInfo* c = nullptr) : f(c ? c->connFifo : nullptr) {}
  void size(int i, int64_t v) const { if (f) __atomic_store_n(&f[i].size, (ssize_t)v, __ATOMIC_RELEASE); }
  char* place(int i, char* base) const { return f && f[i].mode == NCCL_MODE_OFFSET ? base + *(volatile int*)&f[i].offset : nullptr; }
  bool sent(int i) const { return *(volatile ssize_t*)&f[i].size == -1; }
};
#else
struct Fifo {
  ncclConnInfo* c;
  explicit Fifo(ncclConnInfo* c = nullptr) : c(c) {}
  bool sent(int) const { return true; }

#if SINCE(2, 8)
  void size(int i, int64_t v) const { put(c->sizesFifo, i, v); }
#else
  void size(int i, int64_t v) const { put(c->fifo, i, v); }
#endif

  char* place(int i, char* base) const {
#if SINCE(2, 12)
    if (c->offsFifo) return base + *(volatile int*)&c->offsFifo[i];
#elif SINCE(2, 8)
    if (c->ptrsFifo) return (char*)*(void* volatile*)&c->ptrsFifo[i];
#endif
    return nullptr;
  }

 private:
  static void put(int* sizes, int i, int64_t v) { if (sizes) __atomic_store_n(&sizes[i], (int)v, __ATOMIC_RELEASE); }
};
#endif
}  // namespace simgpu
