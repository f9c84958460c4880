// Launches since 2.22: the kernel's arguments name batches of works for each channel.
#pragma once
#include "functions.h"
#include "play.h"
#include "profile.h"
#include "transfer.h"

namespace simgpu {
#if WORK == WORK_BATCHES
#if SINCE(2, 29)
// Broadcasts of unequal parts, which go round one ring together.
inline void allGatherV(Block& b, ncclDevWorkBcast* works, int n, const Function& f) {
  ncclRing& r = b.channel->ring;
  const int prev[] = {r.prev, -1}, next[] = {r.next, -1}, ranks = b.comm->nRanks;
  PathOptions o;
  o.proto = f.proto;
  Path p(b, prev, next, o);
  for (int w = 0, left = 1; left && !b.fibers->aborted(); w = (w + 1) % n) {
    ncclDevWorkBcast& k = works[w];
    const char* src = k.ringDepth == 0 ? (char*)k.sendbuff : nullptr;
    char* dst = (char*)k.recvbuff;
    const int64_t d = std::min<int64_t>((int64_t)k.bytes, (int64_t)k.chunkSize);
    Step s;
    s.n = d, s.dst = dst + k.bytes_done, s.recv = k.ringDepth != 0, s.send = k.ringDepth != ranks - 1;
    if (src) {
      s.src = src + k.bytes_done;
      if (src == dst) s.dst = nullptr;
    }
    if (d > 0) p.run(s);
    k.bytes -= d, k.bytes_done += d;
    left = 0;
    for (int i = 0; i < n; i++) left |= works[i].bytes != 0;
  }
}
#endif

inline Transfer transferOf(Block& b, const ncclDevWorkP2p* w, bool send, char* at, size_t bytes) {
  const bool net = send ? GET(*w, sendNetReg) : GET(*w, recvNetReg);
  const bool once = send ? GET(*w, sendRegistered) : GET(*w, recvRegistered);  // 2.22 and 2.23
  if (send ? GET(*w, sendIpcReg) : GET(*w, recvIpcReg)) unplayed("registered memory between GPUs");
  Transfer t = {};
  t.peer = send ? w->sendRank : w->recvRank;
  t.send = send, t.at = at, t.bytes = bytes, t.ll = send ? w->sendProtoLL : w->recvProtoLL;
  t.chunk = net ? NCCL_MAX_NET_SIZE : u32fp8Decode(send ? w->sendChunkSize_u32fp8 : w->recvChunkSize_u32fp8);
  t.stepBytes = net ? NCCL_MAX_NET_SIZE : b.comm->p2pChunkSize;
  t.registered = net || once, t.once = once;
  return t;
}

inline void transfers(Block& b, ncclDevWorkP2p* works, int n) {
  Transfers all(b);
  for (int i = 0; i < n; i++) {
    ncclDevWorkP2p* w = &works[i];
    const int part = ncclP2pChannelToPart(w->nP2pChannels, w->channelBase, b.number);
    bool has[2] = {};
    char* at[2] = {};
    size_t len[2] = {};
    for (int s = 0; s < 2; s++) {
      const int parts = s ? w->nSendChannels : w->nRecvChannels;
      has[s] = part < parts;
      if (!parts) continue;
      size_t begin, end;
      ncclP2pPartBounds(parts, part, s ? w->sendBytes : w->recvBytes, &begin, &end);
      at[s] = (char*)(s ? w->sendAddr : w->recvAddr) + begin;
      len[s] = end - begin;
    }
    if (w->sendRank == b.comm->rank) {
      if (has[1]) memmove(at[0], at[1], len[1]);
      continue;
    }
    for (int s = 0; s < 2; s++)
      if (has[s]) all.add(transferOf(b, w, s, at[s], len[s]));
  }
}

// The works of a batch and of those that extend it, one after another, aligned as their types want.
class Batch {
 public:
  ncclDevWorkBatch head;
  int n = 0;
  size_t size = 0;

  // Reads from the batch with this index on; next() is the index behind.
  Batch(const ncclDevKernelArgs* args, int index) {
    auto batches = (const ncclDevWorkBatch*)(args + 1);
    for (;; index += head.nextJump) {
      head = batches[index];
      size = ncclDevWorkSize((ncclDevWorkType)head.workType);
      for (int bit = 0; bit < 64; bit++)
        if (head.offsetBitset >> bit & 1) take(args, (uint32_t)(head.offsetBase + (size_t)bit * size));
      if (!head.nextExtends) break;
    }
    following = head.nextJump ? index + head.nextJump : -1;
  }
  int next() const { return following; }
  char* works() { return (char*)store.data(); }

 private:
  struct alignas(16) Grain { char bytes[16]; };
  std::vector<Grain> store;
  int following;

  // The fifo of works wraps, but never within 16 bytes.
  void take(const ncclDevKernelArgs* args, uint32_t at) {
    const bool here = args->workStorageType == ncclDevWorkStorageTypeArgs;
    for (size_t off = 0; off < size; off += sizeof(Grain)) {
      Grain g;
      memcpy(&g, here ? (const char*)args + at + off : (const char*)args->workBuf + ((at + off) & args->workMask), sizeof g);
      store.push_back(g);
    }
    n++;
  }
};

inline void block(Fibers& fibers, const ncclDevKernelArgs* args, int channel, int index) {
  Block b{&fibers, args->comm, &args->comm->channels[channel], channel};
  while (index >= 0 && !fibers.aborted()) {
    Batch k(args, index);
    index = k.next();
    const Function& f = Functions::at(k.head.funcId);
    trace(b.comm->rank, channel, f, k.n);
    Profile profile(b, k.head.workType, k.works(), k.n, k.size);
    if (k.head.workType == ncclDevWorkTypeP2p) {
      transfers(b, (ncclDevWorkP2p*)k.works(), k.n);
      continue;
    }
#if SINCE(2, 29)
    if (k.head.workType == ncclDevWorkTypeBcast) {
      allGatherV(b, (ncclDevWorkBcast*)k.works(), k.n, f);
      continue;
    }
#endif
    for (int i = 0; i < k.n && !fibers.aborted(); i++) {
      Coll c(b, (ncclDevWorkColl*)(k.works() + (size_t)i * k.size), f);
      play(c);
    }
  }
}

constexpr size_t kArgSizes[] = {0};  // they come as one block of bytes

inline void runKernel(const void* kernel, const char* data, unsigned) {
  if (std::find(ncclDevKernelList, ncclDevKernelList + ncclDevKernelCount, kernel) == ncclDevKernelList + ncclDevKernelCount)
    unplayed("this kernel (symmetric memory?)");
  auto args = (const ncclDevKernelArgs*)data;
  Fibers fibers(args->comm->abortFlag);
  int index = 0;
  for (int c = 0; c < MAXCHANNELS; c++)
    if (args->channelMask >> c & 1) fibers.spawn([&fibers, args, c, first = index++] { block(fibers, args, c, first); });
  fibers.run();
}
#endif
}  // namespace simgpu
