// Rings: every rank receives from one neighbour and sends to the other.
#pragma once
#include "coll.h"

namespace simgpu {
class Ring {
 public:
  explicit Ring(Coll& c) : c(c), r(c.b.channel->ring), ranks(c.b.comm->nRanks), prev{r.prev, -1}, next{r.next, -1} {}

  void allReduce() {
    Path p = open(ALLREDUCE_CHUNKSTEPS, ALLREDUCE_SLICESTEPS, c.registered());
    c.pieces.eachRound(ranks, [&](auto at, auto len) {
      const int me = r.index;
      int k = me + ranks - 1;
      c.send(p, at(k), len(k));
      for (int j = 2; j < ranks; j++) k = me + ranks - j, c.recvReduceSend(p, at(k), len(k));
      c.recvReduceCopySend(p, at(me), at(me), len(me));
      for (int j = 1; j < ranks - 1; j++) k = me + ranks - j, c.recvCopySend(p, at(k), len(k));
      c.recv(p, at(me + 1), len(me + 1));
      return c.goesOn();
    });
  }

  void broadcast() {
    const int me = r.userRanks[0], after = r.userRanks[1], root = (int)c.w->root;
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
      if (r.userRanks[ranks - 1] == root) c.send(p, at, n);
      else if (r.userRanks[0] == root) c.recvReduceCopy(p, at, at, n);
      else c.recvReduceSend(p, at, n);
      return c.goesOn();
    });
  }

  void allGather() {
    const int64_t count = c.pieces.count, mine = r.userRanks[0] * count;
    const bool proxyOnly = GET(*c.w, isOneRPN) && c.registered();
    {
      Path p = proxyOnly ? openForProxy() : open(ALLGATHER_CHUNKSTEPS, ALLGATHER_SLICESTEPS, c.registered());
      c.pieces.each([&](int64_t at, int64_t n) {
        if (c.I(at) == c.O(mine + at) || proxyOnly) c.send(p, at, n);
        else c.copySend(p, at, mine + at, n);
        for (int j = 1; j < ranks - 1; j++) c.recvCopySend(p, r.userRanks[ranks - j] * count + at, n);
        c.recv(p, r.userRanks[1] * count + at, n);
        return c.goesOn();
      });
    }
    if (proxyOnly) own(0, mine);
  }

  void reduceScatter() {
    Path p = open(REDUCESCATTER_CHUNKSTEPS, REDUCESCATTER_SLICESTEPS, false);
    const int64_t count = c.pieces.count;
    c.pieces.each([&](int64_t at, int64_t n) {
      c.send(p, r.userRanks[ranks - 1] * count + at, n);
      for (int j = 2; j < ranks; j++) c.recvReduceSend(p, r.userRanks[ranks - j] * count + at, n);
      c.recvReduceCopy(p, r.userRanks[0] * count + at, at, n);
      return c.goesOn();
    });
  }

 private:
  Coll& c;
  ncclRing& r;
  const int ranks, prev[2], next[2];

  Path open(int chunkSteps, int sliceSteps, bool registered) {
    c.slots(chunkSteps);
    PathOptions o = c.path(chunkSteps, sliceSteps);
    o.recvRegistered = o.sendRegistered = registered;
    return Path(c.b, prev, next, o);
  }

#if WORK != WORK_UNCUT
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
