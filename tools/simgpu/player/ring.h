// Rings: every rank receives from one neighbour and sends to the other.
#pragma once
#include "coll.h"

namespace simgpu {
class Ring {
 public:
  explicit Ring(Coll& c) : c(c), r(c.b.channel->ring), round(order(r)), ranks(c.b.comm->nRanks), prev{r.prev, -1}, next{r.next, -1} {}

  void allReduce() {
    Path p = open(ALLREDUCE_CHUNKSTEPS, ALLREDUCE_SLICESTEPS, c.registered());
    c.pieces.eachRound(ranks, [&](auto at, auto len) {
      int k = part(ranks - 1);
      c.send(p, at(k), len(k));
      for (int j = 2; j < ranks; j++) k = part(ranks - j), c.recvReduceSend(p, at(k), len(k));
      k = part(0);
      c.recvReduceCopySend(p, at(k), at(k), len(k));
      for (int j = 1; j < ranks - 1; j++) k = part(ranks - j), c.recvCopySend(p, at(k), len(k));
      k = part(1);
      c.recv(p, at(k), len(k));
      return c.goesOn();
    });
  }

  void broadcast() {
    const int me = round[0], after = round[1], root = (int)c.w->root;
    const bool proxyOnly = GET(*c.w, isOneRPN) && c.registered();
    {
      Path p = open(BROADCAST_CHUNKSTEPS, BROADCAST_SLICESTEPS, c.registered());
      c.pieces.each([&](int64_t at, int64_t n) {
        if (me == root && (c.in == c.out || proxyOnly)) c.send(p, at, n);
        else if (me == root) c.copySend(p, at, at, n);
        else if (after == root) c.recv(p, at, n);
        else c.recvCopySend(p, at, n);
        return c.goesOn();
      });
    }
    if (proxyOnly && me == root) own(0, 0);
  }

  void reduce() {
    Path p = open(REDUCE_CHUNKSTEPS, REDUCE_SLICESTEPS, false);
    const int root = (int)c.w->root;
    c.pieces.each([&](int64_t at, int64_t n) {
      if (round[ranks - 1] == root) c.send(p, at, n);
      else if (round[0] == root) c.recvReduceCopy(p, at, at, n);
      else c.recvReduceSend(p, at, n);
      return c.goesOn();
    });
  }

  void allGather() {
    const int64_t count = c.pieces.count, mine = round[0] * count;
    const bool proxyOnly = GET(*c.w, isOneRPN) && c.registered();
    {
      Path p = proxyOnly ? openForProxy() : open(ALLGATHER_CHUNKSTEPS, ALLGATHER_SLICESTEPS, c.registered());
      c.pieces.each([&](int64_t at, int64_t n) {
        if (c.I(at) == c.O(mine + at) || proxyOnly) c.send(p, at, n);
        else c.copySend(p, at, mine + at, n);
        for (int j = 1; j < ranks - 1; j++) c.recvCopySend(p, round[ranks - j] * count + at, n);
        c.recv(p, round[1] * count + at, n);
        return c.goesOn();
      });
    }
    if (proxyOnly) own(0, mine);
  }

  void reduceScatter() {
    Path p = open(REDUCESCATTER_CHUNKSTEPS, REDUCESCATTER_SLICESTEPS, false);
    const int64_t count = c.pieces.count;
    c.pieces.each([&](int64_t at, int64_t n) {
      c.send(p, round[ranks - 1] * count + at, n);
      for (int j = 2; j < ranks; j++) c.recvReduceSend(p, round[ranks - j] * count + at, n);
      c.recvReduceCopy(p, round[0] * count + at, at, n);
      return c.goesOn();
    });
  }

 private:
  Coll& c;
  ncclRing& r;
  const int* const round;  // the ranks, from this one on
  const int ranks, prev[2], next[2];

  // Which part of an all-reduce belongs to the rank so many places further.
  int part(int places) const {
#if SINCE(2, 10)
    return (r.index + places) % ranks;
#else
    return round[places % ranks];
#endif
  }

  Path open(int chunkSteps, int sliceSteps, bool registered) {
    c.slots(chunkSteps);
    PathOptions o = c.path(chunkSteps, sliceSteps);
    o.recvRegistered = o.sendRegistered = registered;
    return Path(c.b, prev, next, o);
  }

#if HOST_CUTS
  Path openForProxy() {
    PathOptions o = c.path(1, 1);
    o.recvRegistered = o.sendRegistered = o.offload = true;
    o.stepBytes = NCCL_MAX_NET_SIZE;
    c.pieces.whole(NCCL_MAX_NET_SIZE);
    return Path(c.b, prev, next, o);
  }
  // The rank's own part, which the proxy does not move.
  void own(int64_t from, int64_t to) {
    char* dst = c.O(to + c.pieces.first());
    const char* src = c.I(from + c.pieces.first());
    if (dst != src) memcpy(dst, src, (size_t)(c.pieces.all() * c.elt));
  }
#else
  Path openForProxy() { unplayed("registered collectives"); }
  void own(int64_t, int64_t) {}
#endif
};
}  // namespace simgpu
