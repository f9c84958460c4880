// Trees and chains. Both halves run at once, as the two groups of threads of a block do: up to the root, and down from it.
#pragma once
#include "coll.h"

namespace simgpu {
#if HOST_CUTS
class Tree {
 public:
  explicit Tree(Coll& c) : c(c) {}

  void allReduce() {
    ncclTree& t = c.b.channel->tree;
    if (c.registered()) unplayed("a registered tree");
    const int up[] = {t.up, -1};
    int down[NCCL_MAX_TREE_ARITY + 1];
    memcpy(down, t.down, sizeof t.down);
    down[NCCL_MAX_TREE_ARITY] = -1;
    const bool leaf = down[0] < 0;
    if (t.up < 0) {
      Path p(c.b, down, down, c.path(1, 1));
      c.pieces.each([&](int64_t at, int64_t n) { c.recvReduceCopySend(p, at, at, n); return c.goesOn(); });
      return;
    }
    both(
      [&] {
        Path p(c.b, down, up, c.path(1, 1));
        c.pieces.each([&](int64_t at, int64_t n) {
          if (leaf) c.send(p, at, n); else c.recvReduceSend(p, at, n);
          return c.goesOn();
        });
      },
      [&] {
        Path p(c.b, up, down, c.path(1, 1));
        c.pieces.each([&](int64_t at, int64_t n) {
          if (leaf) c.recv(p, at, n); else c.recvCopySend(p, at, n);
          return c.goesOn();
        });
      });
  }

#if WORK == WORK_BATCHES
  // CollNet's chain goes through the ranks of a host to the one that has the network, whose peer is called nRanks. Connection 1 goes up,
  // connection 0 comes down. Who is first on the way down applies what comes after the reduction.
  void collNetChain() {
    ncclTree& t = c.b.channel->collnetChain;
    if (c.registered()) unplayed("a registered chain");
    const int up[] = {t.up, -1}, down[] = {t.down[0], -1};
    both(
      [&] {
        PathOptions o = c.path(1, 1);
        o.connIndex = 1;
        Path p(c.b, down, up, o);
        chunks([&](int64_t at, int64_t n) {
          if (t.down[0] < 0) c.send(p, at, n); else c.recvReduceSend(p, at, n);
        });
      },
      [&] {
        Path p(c.b, up, down, c.path(1, 1));
        const bool first = t.up == c.b.comm->nRanks;
        chunks([&](int64_t at, int64_t n) {
          if (t.down[0] < 0) c.recv(p, at, n, first); else c.recvCopySend(p, at, n, first);
        });
      });
  }
#endif

 private:
  Coll& c;

  template <typename U, typename D> void both(U up, D down) {
    bool done = false;
    c.b.fibers->spawn([&] { up(); done = true; });
    down();
    while (!done) c.b.fibers->yield();
  }

#if WORK == WORK_BATCHES
  // CollNet's work is not cut into parts of channels: they take chunks in turn.
  template <typename F> void chunks(F visit) {
    const int64_t chunk = c.w->collnet.chunkCount, count = (int64_t)c.w->collnet.count;
    const int64_t channels = c.w->channelHi - c.w->channelLo + 1, mine = c.b.number - (int)c.w->channelLo;
    for (int64_t off = mine * chunk; off - mine * chunk < count && c.goesOn(); off += channels * chunk)
      visit(off, std::max<int64_t>(0, std::min(chunk, count - off)));
  }
#endif
};
#endif
}  // namespace simgpu
