// Which function has which number. NCCL's own host code gives the numbers.
#pragma once
#include "nccl.h"

namespace simgpu {
class Functions {
 public:
  static const Function& at(int id) {
    static const Functions all;
    if (id < 0 || id >= kMax || all.table[id].coll < 0) unplayed("this function number");
    return all.table[id];
  }

 private:
  static constexpr int kMax = 16384;
  Function* table = new Function[kMax];  // for the life of the process

  void put(int coll, int op, int type, int algo, int proto) {
    if (type >= ncclNumTypes) return;
#if SINCE(2, 19)
    const int id = ncclDevFuncId(coll, op, type, algo, proto);
#elif SINCE(2, 7)
    const int id = coll == ncclFuncSendRecv ? FUNC_INDEX_P2P : FUNC_INDEX(coll, op, type, algo, proto);
#elif SINCE(2, 5)
    const int id = coll == ncclFuncSendRecv ? -1 : FUNC_INDEX(coll, op, type, algo, proto);
#else
    const int id = coll == ncclFuncSendRecv ? -1 : FUNC_INDEX(coll, op, type, proto, algo);
#endif
    if (id < 0 || id >= kMax || table[id].coll != -1) return;
    table[id].coll = coll, table[id].op = op, table[id].type = type, table[id].algo = algo, table[id].proto = proto;
  }

  Functions() {
    put(ncclFuncSendRecv, 0, ncclInt8, NCCL_ALGO_RING, NCCL_PROTO_SIMPLE);
    for (int p = 0; p < NCCL_NUM_PROTOCOLS; p++) {
      put(ncclFuncBroadcast, 0, ncclInt8, NCCL_ALGO_RING, p);
#if SINCE(2, 29)
      put(ncclFuncAllGatherV, 0, ncclInt8, NCCL_ALGO_RING, p);
#endif
      for (int a : {NCCL_ALGO_RING, NCCL_ALGO_COLLNET_DIRECT, NCCL_ALGO_NVLS, NCCL_ALGO_PAT}) put(ncclFuncAllGather, 0, ncclInt8, a, p);
      reductions(p);
    }
  }

  // Unsigned before signed: NCCL runs signed sums with unsigned kernels.
  void reductions(int p) {
    for (int op = 0; op < ncclNumDevRedOps; op++)
      for (int type : {ncclUint8, ncclUint32, ncclUint64, ncclInt8, ncclInt32, ncclInt64, ncclFloat16, ncclFloat32, ncclFloat64, ncclBfloat16}) {
        for (int a = 0; a < std::min(6, NCCL_NUM_ALGORITHMS); a++) put(ncclFuncAllReduce, op, type, a, p);
        put(ncclFuncReduce, op, type, NCCL_ALGO_RING, p);
        for (int a : {NCCL_ALGO_RING, NCCL_ALGO_COLLNET_DIRECT, NCCL_ALGO_NVLS, NCCL_ALGO_PAT}) put(ncclFuncReduceScatter, op, type, a, p);
      }
  }
};

// SIMGPU_TRACE_KERNELS=1 says what each block plays.
inline void trace(int rank, int channel, const Function& f, int works) {
  static const bool on = getenv("SIMGPU_TRACE_KERNELS");
  if (on) fprintf(stderr, "simgpu: rank %d channel %d collective %d algorithm %d protocol %d works %d\n", rank, channel, f.coll, f.algo, f.proto, works);
}
}  // namespace simgpu
