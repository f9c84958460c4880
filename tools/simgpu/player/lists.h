// Launches from 2.13 to 2.21: the kernel's arguments name lists of ncclWork.
#pragma once
#include "functions.h"
#include "pairs.h"
#include "play.h"

namespace simgpu {
#if WORK == WORK_LISTS || WORK == WORK_UNCUT
inline void block(Fibers& fibers, DevComm* comm, int channel, ncclWork* head, int index) {
  Block b{&fibers, comm, &comm->channels[channel], channel};
  for (ncclWork w = head[index];; w = head[index]) {
    const bool last = w.header.isLast;
    if (last && w.header.inFifo) __atomic_store_n(b.channel->workFifoDone, w.header.doneAcks, __ATOMIC_RELEASE);
    index = w.header.workNext;
    const Function& f = Functions::at(w.header.funcIndex);
    trace(comm->rank, channel, f, 1);
    if (w.header.type == ncclWorkTypeP2p) transfers(b, w.p2pElems);
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

constexpr size_t kArgSizes[] = {sizeof ListArgs::comm, sizeof ListArgs::channels, sizeof ListArgs::head, 0};

inline void runKernel(const void* kernel, const char* data, unsigned) {
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
