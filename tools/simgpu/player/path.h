// The data path of a block: it waits for credits, fills or empties slots of connections, and posts. The counters (head, tail), the
// buffers and the fifo of sizes are those that NCCL's proxies watch. Three protocols: this file has what they share.
#pragma once
#include "fiber.h"
#include "layout.h"
#include "reduce.h"

namespace simgpu {
// What one block knows.
struct Block {
  Fibers* fibers;
  DevComm* comm;
  Channel* channel;
  int number;  // of the channel
};

// What one operation does: where its data comes from and goes to, beside the peers.
struct Step {
  const char* src = nullptr;  // own source, or none
  char* dst = nullptr;        // own destination, or none
  int64_t n = 0;              // elements
  bool recv = false, send = false;
  bool before = false, after = false;              // the reduction's scaling applies
  char *recvInPlace = nullptr, *sendInPlace = nullptr;  // where registered peers put it, take it
};

// How a path is opened.
struct PathOptions {
  int proto = NCCL_PROTO_SIMPLE;
  int slices = 1, stepsPerSlice = 1;  // of a chunk
  int elementSize = 1;
  Reducer reducer{ncclDevSum, ncclInt8, 0};
  int connIndex = 0;
  int sendConnIndex = -1;  // where it is another
  int64_t stepBytes = 0;      // 0: as the buffers are
  bool recvRegistered = false, sendRegistered = false;
  bool p2p = false;
  bool offload = false;  // the proxy moves everything
};

class Path {
 public:
  // Peers end with -1.
  Path(Block& b, const int* recvPeers, const int* sendPeers, const PathOptions& o);
  ~Path();
  void run(Step s) {
    s.n = std::max<int64_t>(0, s.n);
    if (o.proto == NCCL_PROTO_LL) ll(s);
    else if (o.proto == NCCL_PROTO_LL128) ll128(s);
    else simple(s);
  }

 private:
  static constexpr int kMax = 3;
  struct End {
    ncclConnInfo* conn;
    Fifo fifo;
    uint64_t step;
    bool registered;
    int slot() const { return (int)(step % NCCL_STEPS); }
  };

  Block& b;
  const PathOptions o;
  int64_t step1;  // bytes of a step
  int receives = 0, sends = 0;
  End rx[kMax], tx[kMax];
  std::vector<char> spare;

  static uint64_t load(uint64_t* p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
  static void store(uint64_t* p, uint64_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }

  void open(End& e, ncclConnInfo* c, bool recv, bool registered);
  bool credit(End& e, int steps) {
    return b.fibers->wait([&] { return load(e.conn->head) + NCCL_STEPS >= e.step + (uint64_t)steps; });
  }

  void simple(const Step& s);
  char* place(const End& e) const;
  void move(const Step& s, const char* src, char* dst, int64_t n, char** in, char** out);
  void ll(const Step& s);
  void ll128(const Step& s);
};

inline Path::Path(Block& block, const int* recvPeers, const int* sendPeers, const PathOptions& options) : b(block), o(options) {
  step1 = o.stepBytes ? o.stepBytes : bufferBytes(b.comm, b.channel, o.proto) / NCCL_STEPS;
  const int out = o.sendConnIndex < 0 ? o.connIndex : o.sendConnIndex;
  for (; recvPeers && receives < kMax && recvPeers[receives] >= 0; receives++)
    open(rx[receives], connection(b.channel, recvPeers[receives], true, o.connIndex), true, o.recvRegistered);
  for (; sendPeers && sends < kMax && sendPeers[sends] >= 0; sends++)
    open(tx[sends], connection(b.channel, sendPeers[sends], false, out), false, o.sendRegistered);
}

inline void Path::open(End& e, ncclConnInfo* c, bool recv, bool registered) {
  e.conn = c;
  e.fifo = Fifo(c);
  e.registered = false;
  e.step = c->step;
#if SINCE(2, 19)
  if (c->netDeviceHandle.netDeviceType == NCCL_NET_DEVICE_UNPACK) unplayed("a network device that unpacks on the GPU");
#endif
  if (o.proto != NCCL_PROTO_SIMPLE) return;
  const uint64_t chunk = (uint64_t)o.slices * (uint64_t)o.stepsPerSlice;
  e.step = (c->step + chunk - 1) / chunk * chunk;
  if (recv) store(c->head, e.step);  // gives back the credits of the steps that it leaves out
  const int flags = GET(*c, flags);
  if (registered && (flags & (NCCL_P2P_READ | NCCL_P2P_WRITE)) && !(flags & NCCL_DIRECT_NIC)) unplayed("registered memory between GPUs");
  e.registered = registered && (o.p2p || (flags & NCCL_DIRECT_NIC));
  if (e.registered && recv) e.fifo.size(e.slot(), 0);
}

inline Path::~Path() {
  for (int i = 0; i < receives; i++) rx[i].conn->step = rx[i].step;
  for (int i = 0; i < sends; i++) tx[i].conn->step = tx[i].step;
  // A registered source belongs to the network until the proxy says that it has been sent.
  for (int i = 0; i < sends; i++)
    if (tx[i].registered) b.fibers->wait([&] { return tx[i].fifo.sent((int)((tx[i].step - (uint64_t)o.stepsPerSlice) % NCCL_STEPS)); });
}
}  // namespace simgpu
