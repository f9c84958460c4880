// One direction of a send or receive, through connection 1 of its peer (up to 2.11 the one that collectives have, too).
#pragma once
#include "path.h"

namespace simgpu {
struct Transfer {
  int peer;
  bool send;
  char* at;
  size_t bytes;
  bool ll;
  int64_t chunk;      // bytes that the kernel takes at once
  int64_t stepBytes;  // 0: as the buffers are
  bool registered;
  bool once;  // one step is all that the kernel sees: the proxy moves the rest
};

inline void run(Block& b, const Transfer& t) {
  const int peers[] = {t.peer, -1};
  PathOptions o;
  o.proto = t.ll ? NCCL_PROTO_LL : NCCL_PROTO_SIMPLE;
  o.connIndex = SINCE(2, 12) ? 1 : 0, o.stepBytes = t.stepBytes, o.p2p = true;
  o.recvRegistered = t.registered && !t.send, o.sendRegistered = t.registered && t.send;
  Path p(b, t.send ? nullptr : peers, t.send ? peers : nullptr, o);
  size_t done = 0;
  do {  // a transfer of nothing is one empty message
    const int64_t n = (int64_t)std::min<size_t>((size_t)t.chunk, t.bytes - done);
    if (t.send) p.run({t.at + done, nullptr, n, false, true, false, false, nullptr, nullptr});
    else p.run({nullptr, t.at + done, n, true, false, false, false, nullptr, nullptr});
    done += (size_t)n;
  } while (done < t.bytes && !t.once && !b.fibers->aborted());
}

// Both directions of all peers of a batch run at once.
class Transfers {
 public:
  explicit Transfers(Block& b) : b(b) {}
  ~Transfers() { while (running) b.fibers->yield(); }
  void add(const Transfer& t) {
    running++;
    b.fibers->spawn([this, t] { run(b, t); running--; });
  }

 private:
  Block& b;
  int running = 0;
};
}  // namespace simgpu
