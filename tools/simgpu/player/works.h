// What a work says, up to 2.12, in three generations: ncclColl to 2.7, ncclWork of collectives or pairs to 2.11, and with a header in 2.12.
#pragma once
#include "coll.h"
#include "pairs.h"

namespace simgpu {
#if WORK == WORK_FIFO
#if SINCE(2, 12)
typedef ncclWorkElem First;
typedef ncclWork Work;
struct KernelArgs {
  DevComm* comm;
  First first;
};
constexpr size_t kArgSizes[] = {sizeof(DevComm*), sizeof(First), 0};
inline DevComm* commOf(const KernelArgs& a) { return a.comm; }

inline bool isGiven(const First& e) { return e.header.type != ncclWorkTypeUnused; }
inline int functionOf(const Work& w) { return w.header.funcIndex; }
inline bool isLast(const Work& w) { return w.header.isLast; }
inline void giveBack(Work* w) { w->header.type = ncclWorkTypeUnused; }

template <typename F> void eachColl(const Work& w, F visit) {
  if (w.header.type != ncclWorkTypeColl) unplayed("a registered collective");
  for (int i = 0; i < (int)NCCL_MAX_WORK_ELEMENTS && isGiven(w.elems[i]); i++) {
    const ncclWorkElem& e = w.elems[i];
    visit(CollWork{e.sendbuff, e.recvbuff, e.count, e.lastChunkSize, e.root, e.bid, e.nChannels, e.header.nWarps * WARP_SIZE, e.redOpArg, e.redOpArgIsPtr != 0});
  }
}
inline void transfers(Block& b, const Work& w) { transfers(b, w.p2pElems); }

#else
#if SINCE(2, 8)
typedef ncclWorkElem First;
typedef ncclWork Work;
typedef ncclWorkElem Elem;
inline const Elem& headOf(const Work& w) { return w.elems[0]; }
inline DevComm* commOf(const Elem& e) { return e.comm; }
inline void giveBack(Work* w) { w->elems[0].active = 0; }
#if SINCE(2, 10)
inline bool isGiven(const First& e) { return e.active; }
#else
inline bool isGiven(const First& e) { return e.funcIndex != FUNC_INDEX_P2P; }
#endif
#else
typedef ncclColl First;
typedef ncclColl Work;
typedef CollectiveArgs Elem;
inline const Work& headOf(const Work& w) { return w; }
inline DevComm* commOf(const First& c) { return c.args.comm; }
inline void giveBack(Work* w) { w->active = 0; }
inline bool isGiven(const First&) { return true; }
#endif
struct KernelArgs {
  First first;
};
constexpr size_t kArgSizes[] = {sizeof(First), 0};
inline DevComm* commOf(const KernelArgs& a) { return commOf(a.first); }
inline int functionOf(const Work& w) { return headOf(w).funcIndex; }
inline bool isLast(const Work& w) { return headOf(w).active == 2; }

#if SINCE(2, 7)
// A send to the rank so many places further, and a receive from the one so many places back; none where the count is negative.
template <typename P> void pair(Block& b, Transfers& all, const Elem& e, const P& p) {
  const int ranks = b.comm->nRanks, back = (b.comm->rank - p.delta + ranks) % ranks, further = (b.comm->rank + p.delta) % ranks;
  if (p.delta == 0) {
    if (e.sendbuff != e.recvbuff) memmove(e.recvbuff, e.sendbuff, p.sendCount);
    return;
  }
#if SINCE(2, 9)
  const int sendChunk = p.sendChunkSize, recvChunk = p.recvChunkSize;
#else
  const int sendChunk = (int)(bufferBytes(b.comm, b.channel, NCCL_PROTO_SIMPLE) / NCCL_STEPS / SENDRECV_SLICEFACTOR), recvChunk = sendChunk;
#endif
  if ((ssize_t)p.recvCount >= 0) all.add({back, false, (char*)e.recvbuff, p.recvCount, false, recvChunk, 0, false, false});
  if ((ssize_t)p.sendCount >= 0) all.add({further, true, (char*)e.sendbuff, p.sendCount, false, sendChunk, 0, false, false});
}
#endif

#if SINCE(2, 8)
inline CollWork collOf(const Elem& e) {
  CollWork c = {e.sendbuff, e.recvbuff, e.coll.count, e.coll.lastChunkSize, e.coll.root, e.coll.bid, e.coll.nChannels, e.nThreads, 0, false};
#if SINCE(2, 11)
  c.redOpArg = e.coll.redOpArg, c.redOpArgIsPtr = e.redOpArgIsPtr;
#endif
  return c;
}
template <typename F> void eachColl(const Work& w, F visit) {
  visit(collOf(w.elems[0]));
#if SINCE(2, 10)
  for (int i = 1; i < NCCL_MAX_WORK_ELEMENTS && w.elems[i].active; i++) visit(collOf(w.elems[i]));
#endif
}
inline void transfers(Block& b, const Work& w) {
  Transfers all(b);
  for (int i = 0; i < NCCL_MAX_WORK_ELEMENTS && w.elems[i].p2p.nThreads; i++) {
    if (SINCE(2, 10) && !w.elems[i].active) break;
    pair(b, all, w.elems[i], w.elems[i].p2p);
  }
}
#elif SINCE(2, 7)
template <typename F> void eachColl(const Work& w, F visit) {
  const Elem& e = w.args;
  visit(CollWork{e.sendbuff, e.recvbuff, e.coll.count, e.coll.lastChunkSize, e.coll.root, e.coll.bid, e.coll.nChannels, e.coll.nThreads, 0, false});
}
inline void transfers(Block& b, const Work& w) {
  Transfers all(b);
  if (w.args.p2p.delta >= 0) pair(b, all, w.args, w.args.p2p);
}
#else
template <typename F> void eachColl(const Work& w, F visit) {
  const Elem& e = w.args;
  visit(CollWork{e.ThisInput, e.ThisOutput, e.N, (size_t)e.lastChunkSize, e.root, e.bid, e.nChannels, e.nThreads, 0, false});
}
inline void transfers(Block&, const Work&) { unplayed("a send or receive before 2.7"); }
#endif
#endif

// The fifo of a channel.
inline Work take(Work* dev, Work* host, int i) {
  const Work w = dev[i];
  __atomic_thread_fence(__ATOMIC_ACQ_REL);
  giveBack(&host[i]);
  return w;
}

#if SINCE(2, 8)
inline Work alone(const First& first) {
  Work w = {};
  memcpy(&w, &first, sizeof first);
  return w;
}
inline int behind(const Work&, int i) { return (i + 1) % NCCL_MAX_OPS; }
#else
inline Work alone(const First& first) { return first; }
inline int behind(const Work& w, int) { return w.nextIndex; }
#endif

#if SINCE(2, 9)
inline int beginOf(Channel* c, const First&) { return c->index; }
inline void keep(Channel* c, int i) { c->index = (uint16_t)i; }
inline Work read(Channel* c, int i) { return take(c->workFifoDev, c->workFifo, i); }
#elif SINCE(2, 8)
inline int beginOf(Channel*, const First& first) { return first.index; }
inline void keep(Channel*, int) {}
inline Work read(Channel* c, int i) { return take(c->workFifo, c->workFifo, i); }
#else
inline int beginOf(Channel* c, const First&) { return c->collFifoHead; }
inline void keep(Channel* c, int i) { c->collFifoHead = i; }
#if SINCE(2, 7)
inline Work read(Channel* c, int i) { return take(c->collectives, c->collectives, i); }
#else
inline Work read(Channel* c, int i) { return take(c->devCollectives, c->devCollectives, i); }
#endif
#endif
#endif
}  // namespace simgpu
