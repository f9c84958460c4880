// Launches up to 2.12: a kernel has its first work by value, and takes the others from the fifo of each channel.
#pragma once
#include "functions.h"
#include "play.h"
#include "works.h"

namespace simgpu {
#if WORK == WORK_FIFO
// The works of a block, one after another. The host may use the place of one in the fifo again once it has been read.
class Queue {
 public:
  Queue(Channel* c, const First& first, bool given) : c(c), first(given ? &first : nullptr), index(beginOf(c, first)) {}

  Work next() {
    const Work w = first ? alone(*first) : read(c, index);
    first = nullptr;
    index = behind(w, index);
    keep(c, index);
    return w;
  }

 private:
  Channel* const c;
  const First* first;
  int index;
};

inline void block(Fibers& fibers, DevComm* comm, int channel, const First& first) {
  Block b{&fibers, comm, &comm->channels[channel], channel};
  for (Queue q(b.channel, first, channel == 0 && isGiven(first)); !fibers.aborted();) {
    const Work w = q.next();
    const Function& f = Functions::at(functionOf(w));
    trace(comm->rank, channel, f, 1);
    if (f.coll == ncclFuncSendRecv) transfers(b, w);
    else eachColl(w, [&](CollWork k) {
      if (fibers.aborted()) return;
      Coll c(b, &k, f);
      play(c);
    });
    if (isLast(w)) break;
  }
}

inline void runKernel(const void*, const char* data, unsigned blocks) {
  KernelArgs a;
  memcpy(&a, data, sizeof a);
  DevComm* comm = commOf(a);
  if (comm->nRanks < 2) unplayed("a reduction of one rank");
  Fibers fibers(comm->abortFlag);
  for (unsigned c = 0; c < blocks; c++) fibers.spawn([&fibers, &a, comm, c] { block(fibers, comm, (int)c, a.first); });
  fibers.run();
}
#endif
}  // namespace simgpu
