// Which player a collective has.
#pragma once
#include "ring.h"
#include "tree.h"

namespace simgpu {
inline void play(Coll& c) {
  if (c.f.algo == NCCL_ALGO_RING) {
    Ring r(c);
    switch (c.f.coll) {
      case ncclFuncAllReduce: return r.allReduce();
      case ncclFuncBroadcast: return r.broadcast();
      case ncclFuncReduce: return r.reduce();
      case ncclFuncAllGather: return r.allGather();
      case ncclFuncReduceScatter: return r.reduceScatter();
    }
  }
#if HOST_CUTS
  if (c.f.algo == NCCL_ALGO_TREE && c.f.coll == ncclFuncAllReduce) return Tree(c).allReduce();
#endif
#if WORK == WORK_BATCHES
  if (c.f.algo == NCCL_ALGO_COLLNET_CHAIN && c.f.coll == ncclFuncAllReduce) return Tree(c).collNetChain();
#endif
  unplayed("this algorithm (set NCCL_ALGO=Ring,Tree; up to 2.19 NCCL_ALGO=Ring)");
}
}  // namespace simgpu
