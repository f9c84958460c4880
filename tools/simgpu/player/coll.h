// What the collectives share: the operation's buffers and reduction, and the steps of rings and trees by the kernels' names.
#pragma once
#include "pieces.h"

namespace simgpu {
struct Coll {
  Block& b;
  CollWork* w;
  const Function f;
  const int elt;
  const Reducer reducer;
  char *const in, *const out;
  Pieces pieces;

  Coll(Block& b, CollWork* w, const Function& f)
    : b(b), w(w), f(f), elt(typeSize(f.type)), reducer(reducerOf(w, f)), in((char*)w->sendbuff), out((char*)w->recvbuff), pieces(b, w, f, elt) {}

  static Reducer reducerOf(CollWork* w, const Function& f) {
#if !SINCE(2, 19)
    if (f.op > ncclDevProd && f.op != ncclDevPreMulSum && f.op != ncclDevSumPostDiv) unplayed("a minimum or maximum before 2.19, or an average of 2.10");
#endif
    uint64_t arg = w->redOpArg;
    const bool uses = f.op == ncclDevMinMax || f.op == ncclDevPreMulSum || f.op == ncclDevSumPostDiv;
    if (uses && w->redOpArgIsPtr) {
      const void* at = (const void*)arg;
      arg = 0;
      memcpy(&arg, at, f.op == ncclDevSumPostDiv ? sizeof arg : (size_t)typeSize(f.type));
    }
    return Reducer{f.op, f.type, arg};
  }

  bool registered() const { return GET(*w, netRegUsed); }
  bool goesOn() const { return !b.fibers->aborted(); }

  PathOptions path(int chunkSteps, int sliceSteps) const {
    PathOptions o;
    o.proto = f.proto, o.slices = chunkSteps / sliceSteps, o.stepsPerSlice = sliceSteps, o.elementSize = elt, o.reducer = reducer;
    return o;
  }

  // Cuts chunks for the buffers of this protocol, where the host has not done so.
  void slots(int chunkSteps) { pieces.slots(bufferBytes(b.comm, b.channel, f.proto) / NCCL_STEPS, chunkSteps); }

  const char* I(int64_t i) const { return in + i * elt; }
  char* O(int64_t i) const { return out + i * elt; }

  void send(Path& p, int64_t i, int64_t n) const { p.run({I(i), nullptr, n, false, true, true, false, nullptr, nullptr}); }
  void copySend(Path& p, int64_t i, int64_t o, int64_t n) const { p.run({I(i), O(o), n, false, true, true, false, nullptr, nullptr}); }
  void sendFromOut(Path& p, int64_t o, int64_t n) const { p.run({O(o), nullptr, n, false, true, false, false, nullptr, nullptr}); }
  void recv(Path& p, int64_t o, int64_t n, bool after = false) const { p.run({nullptr, O(o), n, true, false, false, after, O(o), nullptr}); }
  void recvCopySend(Path& p, int64_t o, int64_t n, bool after = false) const { p.run({nullptr, O(o), n, true, true, false, after, O(o), O(o)}); }
  void recvReduceSend(Path& p, int64_t i, int64_t n) const { p.run({I(i), nullptr, n, true, true, true, false, O(i), O(i)}); }
  void recvReduceCopy(Path& p, int64_t i, int64_t o, int64_t n) const { p.run({I(i), O(o), n, true, false, true, true, nullptr, nullptr}); }
  void recvReduceCopySend(Path& p, int64_t i, int64_t o, int64_t n) const { p.run({I(i), O(o), n, true, true, true, true, O(o), O(o)}); }
};
}  // namespace simgpu
