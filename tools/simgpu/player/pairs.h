// The sends and receives of one work, from 2.12 to 2.21. They alternate, receives first.
#pragma once
#include "transfer.h"

namespace simgpu {
#if WORK != WORK_BATCHES && SINCE(2, 12)
#if SINCE(2, 13)
inline bool isUnused(const ncclWorkElemP2p& e) { return e.p2pType == ncclWorkP2pTypeUnused; }
inline char* bufferOf(const ncclWorkElemP2p& e) { return (char*)((uintptr_t)e.buffHi32 << 32 | e.buffLo32); }
inline size_t bytesOf(const ncclWorkElemP2p& e) { return (size_t)e.countHi32 << 32 | e.countLo32; }
#else
inline bool isUnused(const ncclWorkElemP2p& e) { return e.header.type == ncclWorkTypeUnused; }
inline char* bufferOf(const ncclWorkElemP2p& e) { return (char*)e.buff; }
inline size_t bytesOf(const ncclWorkElemP2p& e) { return e.count; }
#endif

#if SINCE(2, 14)
inline bool isLL(const ncclWorkElemP2p& e) { return e.proto == NCCL_PROTO_LL; }
#else
inline bool isLL(const ncclWorkElemP2p&) { return false; }
#endif

inline void transfers(Block& b, const ncclWorkElemP2p* elems) {
  Transfers all(b);
  for (int i = 0; i < elems[0].ngroups && i < (int)NCCL_MAX_WORK_ELEMENTS_P2P; i++) {
    const ncclWorkElemP2p& e = elems[i];
    if (isUnused(e) || e.peer == -1) continue;
    const bool send = i % 2;
    if (e.peer == b.comm->rank) {
      char* to = send ? bufferOf(elems[i - 1]) : nullptr;
      if (send && bufferOf(e) != to) memmove(to, bufferOf(e), bytesOf(e));
      continue;
    }
    Transfer t = {};
    t.peer = e.peer, t.send = send, t.at = bufferOf(e), t.bytes = bytesOf(e), t.ll = isLL(e);
    t.chunk = t.ll ? e.chunkSize / 2 : e.chunkSize;
    t.stepBytes = t.ll ? 0 : GET(*b.comm, p2pChunkSize);
    t.registered = t.once = GET(e, reg);
    all.add(t);
  }
}
#endif
}  // namespace simgpu
