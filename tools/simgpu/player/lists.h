// Launches up to 2.21: the kernel's arguments name lists of ncclWork.
#pragma once
#include "functions.h"
#include "play.h"
#include "transfer.h"

namespace simgpu {
#if WORK != WORK_BATCHES
#if SINCE(2, 20)
inline bool isRegistered(const ncclWorkElemP2p& e) { return e.reg; }
#else
inline bool isRegistered(const ncclWorkElemP2p&) { return false; }
#endif

inline char* bufferOf(const ncclWorkElemP2p& e) { return (char*)((uintptr_t)e.buffHi32 << 32 | e.buffLo32); }
inline size_t bytesOf(const ncclWorkElemP2p& e) { return (size_t)e.countHi32 << 32 | e.countLo32; }

// Receives and sends alternate.
inline void transfers(Block& b, ncclWork* w) {
  Transfers all(b);
  for (int i = 0; i < w->p2pElems[0].ngroups && i < NCCL_MAX_WORK_ELEMENTS_P2P; i++) {
    const ncclWorkElemP2p& e = w->p2pElems[i];
    if (e.p2pType == ncclWorkP2pTypeUnused || e.peer == -1) continue;
    const bool send = i % 2;
    if (e.peer == b.comm->rank) {
      char* to = send ? bufferOf(w->p2pElems[i - 1]) : nullptr;
      if (send && bufferOf(e) != to) memmove(to, bufferOf(e), bytesOf(e));
      continue;
    }
    Transfer t = {};
    t.peer = e.peer, t.send = send, t.at = bufferOf(e), t.bytes = bytesOf(e), t.ll = e.proto == NCCL_PROTO_LL;
    t.chunk = t.ll ? e.chunkSize / 2 : e.chunkSize;
    t.stepBytes = t.ll ? 0 : GET(*b.comm, p2pChunkSize);
    t.registered = t.once = isRegistered(e);
    all.add(t);
  }
}

inline void block(Fibers& fibers, DevComm* comm, int channel, ncclWork* head, int index) {
  Block b{&fibers, comm, &comm->channels[channel], channel};
  for (ncclWork w = head[index];; w = head[index]) {
    const bool last = w.header.isLast;
    if (last && w.header.inFifo) __atomic_store_n(b.channel->workFifoDone, w.header.doneAcks, __ATOMIC_RELEASE);
    index = w.header.workNext;
    const Function& f = Functions::at(w.header.funcIndex);
    trace(comm->rank, channel, f, 1);
    if (w.header.type == ncclWorkTypeP2p) transfers(b, &w);
    else if (w.header.type != ncclWorkTypeColl) unplayed("a registered collective");
    else for (int i = 0; i < (int)NCCL_MAX_WORK_ELEMENTS && w.elems[i].isUsed && !fibers.aborted(); i++) {
      Coll c(b, &w.elems[i], f);
      play(c);
    }
    if (last || fibers.aborted()) break;
  }
}

struct ListArgs {
  DevComm* comm;
  uint64_t channels;
  ncclWork* head;
};

inline void runKernel(const void* kernel, const char* data, size_t) {
#if SINCE(2, 19)
  if (std::find(ncclDevKernelList, ncclDevKernelList + ncclDevKernelCount, kernel) == ncclDevKernelList + ncclDevKernelCount)
    unplayed("this kernel");
#endif
  ListArgs a;
  memcpy(&a, data, sizeof a);
  if (a.comm->nRanks < 2) unplayed("a reduction of one rank");
  Fibers fibers(a.comm->abortFlag);
  int index = 0;
  for (int c = 0; c < MAXCHANNELS; c++)
    if (a.channels >> c & 1) fibers.spawn([&fibers, a, c, first = index++] { block(fibers, a.comm, c, a.head, first); });
  fibers.run();
}
#endif
}  // namespace simgpu
