// The protocols LL and LL128: lines of data with flags in them. The flags say that the data is there, not the counters.
#pragma once
#include "path.h"

namespace simgpu {
// LL: 8 bytes of data in two words, each with the flag in its high half.
struct LLLine {
  uint64_t a, b;
  static LLLine of(uint64_t v, uint32_t flag) { return {(v & 0xffffffffu) | (uint64_t)flag << 32, v >> 32 | (uint64_t)flag << 32}; }
  void put(uint64_t v, uint32_t flag) {
    const LLLine l = of(v, flag);
    __atomic_store_n(&a, l.a, __ATOMIC_RELEASE);
    __atomic_store_n(&b, l.b, __ATOMIC_RELEASE);
  }
  bool get(uint64_t* v, uint32_t flag) {
    const uint64_t x = __atomic_load_n(&a, __ATOMIC_ACQUIRE), y = __atomic_load_n(&b, __ATOMIC_ACQUIRE);
    *v = (x & 0xffffffffu) | y << 32;
    return (uint32_t)(x >> 32) == flag && (uint32_t)(y >> 32) == flag;
  }
};

inline void Path::ll(const Step& s) {
  const int elt = o.elementSize;
  const int64_t bytes = s.n * elt, lines = divup(bytes, 8);
  const int64_t all = bufferBytes(b.comm, b.channel, NCCL_PROTO_LL) / NCCL_STEPS / (int64_t)sizeof(LLLine);
  LLLine *in[kMax], *out[kMax];
  // From time to time a slot is sent whole, so that no flag is old when its number comes again.
  auto cleans = [](const End& e) { return (e.step & NCCL_LL_CLEAN_MASK) == NCCL_LL_CLEAN_MASK; };
  auto flag = [](const End& e) { return (uint32_t)NCCL_LL_FLAG(e.step + 1); };
  const int r = s.recv ? receives : 0, t = s.send ? sends : 0;
  for (int i = 0; i < t; i++) {
    if (!credit(tx[i], 1)) return;
    tx[i].fifo.size(tx[i].slot(), (cleans(tx[i]) ? all : lines) * (int64_t)sizeof(LLLine));
    out[i] = (LLLine*)buffer(tx[i].conn, NCCL_PROTO_LL) + tx[i].slot() * all;
  }
  for (int i = 0; i < r; i++) in[i] = (LLLine*)buffer(rx[i].conn, NCCL_PROTO_LL) + rx[i].slot() * all;

  for (int64_t l = 0; l < lines; l++) {
    const size_t left = (size_t)std::min<int64_t>(8, bytes - l * 8), count = left / (size_t)elt;
    uint64_t acc = 0;
    bool any = false;
    if (s.src) {
      memcpy(&acc, s.src + l * 8, left);
      if (s.before) o.reducer.before(&acc, count);
      any = true;
    }
    for (int i = 0; i < r; i++) {
      uint64_t v = 0;
      auto ready = [&] { return in[i][l].get(&v, flag(rx[i])); };
      if (!ready() && !b.fibers->wait(ready)) return;
      if (any) o.reducer.add(&acc, &v, count);
      else acc = v;
      any = true;
    }
    if (s.after) o.reducer.after(&acc, count);
    for (int i = 0; i < t; i++) out[i][l].put(acc, flag(tx[i]));
    if (s.dst) memcpy(s.dst + l * 8, &acc, left);
  }
  for (int i = 0; i < r; i++) rx[i].step++, store(rx[i].conn->head, rx[i].step);
  for (int i = 0; i < t; i++) {
    if (cleans(tx[i])) for (int64_t l = lines; l < all; l++) out[i][l] = LLLine::of(0, flag(tx[i]));
    tx[i].step++;
  }
  b.fibers->moved();
}

// LL128: lines of 128 bytes, of which the last 8 are the flag.
struct LL128Line {
  static constexpr int kData = 120;
  char data[kData];
  uint64_t flag;
};

inline void Path::ll128(const Step& s) {
  const int elt = o.elementSize;
  constexpr int kGroup = 16;  // lines that a warp writes at once, all with flags
  const int64_t bytes = s.n * elt, lines = divup(bytes, LL128Line::kData * kGroup) * kGroup;
  const int64_t slot = bufferBytes(b.comm, b.channel, NCCL_PROTO_LL128) / NCCL_STEPS / (int64_t)sizeof(LL128Line);
  LL128Line *in[kMax], *out[kMax];
  const int r = s.recv ? receives : 0, t = s.send ? sends : 0;
  for (int i = 0; i < t; i++) {
    if (!credit(tx[i], 1)) return;
    tx[i].fifo.size(tx[i].slot(), lines * (int64_t)sizeof(LL128Line));
    out[i] = (LL128Line*)buffer(tx[i].conn, NCCL_PROTO_LL128) + tx[i].slot() * slot;
  }
  for (int i = 0; i < r; i++) in[i] = (LL128Line*)buffer(rx[i].conn, NCCL_PROTO_LL128) + rx[i].slot() * slot;

  for (int64_t l = 0; l < lines; l++) {
    const int64_t at = l * LL128Line::kData;
    const size_t left = (size_t)std::max<int64_t>(0, std::min<int64_t>(LL128Line::kData, bytes - at)), count = left / (size_t)elt;
    alignas(8) char acc[LL128Line::kData] = {};
    bool any = false;
    if (s.src && left) {
      memcpy(acc, s.src + at, left);
      if (s.before) o.reducer.before(acc, count);
      any = true;
    }
    for (int i = 0; i < r; i++) {
      auto ready = [&] { return __atomic_load_n(&in[i][l].flag, __ATOMIC_ACQUIRE) == rx[i].step + 1; };
      if (!ready() && !b.fibers->wait(ready)) return;
      if (any) o.reducer.add(acc, in[i][l].data, count);
      else memcpy(acc, in[i][l].data, left);
      any = true;
    }
    if (s.after) o.reducer.after(acc, count);
    for (int i = 0; i < t; i++) {
      memcpy(out[i][l].data, acc, sizeof acc);
      __atomic_store_n(&out[i][l].flag, tx[i].step + 1, __ATOMIC_RELEASE);
    }
    if (s.dst && left) memcpy(s.dst + at, acc, left);
  }
  for (int i = 0; i < r; i++) rx[i].step++, store(rx[i].conn->head, rx[i].step);
  for (int i = 0; i < t; i++) {
    tx[i].step++;
    store(tx[i].conn->tail, tx[i].step);
  }
  b.fibers->moved();
}
}  // namespace simgpu
