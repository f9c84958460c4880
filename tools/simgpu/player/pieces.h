// How a collective's data is cut: into the parts of channels, and these into chunks. Since 2.20 the host does it.
#pragma once
#include "path.h"

namespace simgpu {
#if !HOST_CUTS
#if WORK == WORK_UNCUT
typedef ncclWorkElem CollWork;
inline int threadsOf(const CollWork* w) { return w->nWarps * WARP_SIZE; }
#else
// What works up to 2.12 say of a collective.
struct CollWork {
  const void* sendbuff;
  void* recvbuff;
  size_t count, lastChunkSize;
  uint32_t root;
  int bid, nChannels, threads;
  uint64_t redOpArg;
  bool redOpArgIsPtr;
};
inline int threadsOf(const CollWork* w) { return w->threads; }
#endif

class Pieces {
 public:
  Pieces(Block&, CollWork* w, const Function& f, int elt)
    : count(w->count), proto(f.proto), elt(elt), number(w->bid), halved(f.coll != ncclFuncBroadcast && f.coll != ncclFuncReduce),
      channels(w->nChannels), threads(threadsOf(w)), last(w->lastChunkSize) {}
  const int64_t count;  // elements in all, of a rank where ranks have parts

  // A chunk in a slot of so many bytes and steps.
  void slots(int64_t bytes, int chunkSteps) {
    chunk = proto == NCCL_PROTO_SIMPLE ? bytes / elt * chunkSteps : proto == NCCL_PROTO_LL128 ? bytes / 16 * 15 / elt : bytes / 2 / elt;
  }

  // visit(where it begins, elements) for each piece of this channel.
  template <typename F> void each(F visit) const {
    for (int64_t off = 0; off < count; off += channels * chunk) {
      const int64_t c = cut(off, 1), at = off + number * c;
      if (!visit(at, std::max<int64_t>(0, std::min(c, count - at)))) return;
    }
  }

  // visit(at, len), functions of the rank whose part a piece is: all-reduce cuts each round into parts of the ranks.
  template <typename F> void eachRound(int ranks, F visit) const {
    for (int64_t off = 0; off < count; off += channels * ranks * chunk) {
      const int64_t c = cut(off, ranks);
      auto at = [=, this](int k) {
        k %= ranks;
        return proto == NCCL_PROTO_SIMPLE || !SINCE(2, 5) ? off + (number * ranks + k) * c : off + (k * channels + number) * c;
      };
      if (!visit(at, [=, this](int k) { return std::max<int64_t>(0, std::min(c, count - at(k))); })) return;
    }
  }

 private:
  const int proto, elt, number;
  const bool halved;  // the grain of LL128, where ranks have parts
  const int64_t channels, threads, last;
  int64_t chunk = 0;

  // The chunk of a loop that begins at off: a channel takes so many of them in one.
  int64_t cut(int64_t off, int parts) const {
    const int64_t left = count - off;
    if (proto == NCCL_PROTO_SIMPLE) {
      const int64_t grain = (threads - (SINCE(2, 5) ? 32 : 1)) * 8 / elt;  // of the threads that move data
      return divup(std::min(chunk, divup(left, channels * parts)), grain) * grain;
    }
    if (proto == NCCL_PROTO_LL && (parts == 1 || !SINCE(2, 5))) return left < channels * parts * chunk ? last : chunk;
    const int64_t grain = proto == NCCL_PROTO_LL128 ? threads * 60 / elt / (halved ? 2 : 1) : threads * (8 / elt);
    return std::min(chunk, divup(left, channels * parts * grain) * grain);
  }
};

#else
#if WORK == WORK_LISTS
typedef ncclWorkElem CollWork;
#else
typedef ncclDevWorkColl CollWork;
#endif

class Pieces {
 public:
  Pieces(Block& b, CollWork* w, const Function& f, int elt) : elt(elt) {
#if WORK == WORK_LISTS
    count = (int64_t)w->count, offset = (int64_t)w->workOffset, part = (int64_t)w->workCount, chunk = (int64_t)w->chunkCount, last = (int64_t)w->lastChunkCount;
#else
    ncclCollCbdPart(w, (uint32_t)b.number, f.proto, elt, &count, &offset, &part, &chunk);
#endif
  }
  int64_t count;
  void slots(int64_t, int) {}
  void whole(int64_t most) { chunk = most; }  // pieces as large as the network takes
  int64_t first() const { return offset; }
  int64_t all() const { return part; }

  template <typename F> void each(F visit) const {
    for (int64_t at = 0; at < part; at += chunk)
      if (!visit(offset + at, std::min(chunk, part - at))) return;
  }

  template <typename F> void eachRound(int ranks, F visit) const {
    for (int64_t off = 0; off < part; off += ranks * chunk) {
      const int64_t left = part - off, c = left < ranks * chunk ? lastChunk(left, ranks) : chunk;
      auto at = [=, this](int k) { return offset + off + (k % ranks) * c; };
      if (!visit(at, [=](int k) { return std::max<int64_t>(0, std::min(c, left - (k % ranks) * c)); })) return;
    }
  }

 private:
  const int elt;
  int64_t offset, part, chunk, last = 0;

  int64_t lastChunk(int64_t left, int ranks) const {
    if (last) return last;
    const int64_t grain = 16 / elt;
    return divup(divup(left, ranks), grain) * grain;
  }
};
#endif
}  // namespace simgpu
