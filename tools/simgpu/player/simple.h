// The protocol Simple: whole slices, announced by the counters alone.
#pragma once
#include "path.h"

namespace simgpu {
// SIMGPU_CORRUPT=N spoils one bit of the N-th slice that this process sends: a test that does not notice is worth nothing.
inline bool spoiled() {
  static long left = getenv("SIMGPU_CORRUPT") ? atol(getenv("SIMGPU_CORRUPT")) : 0;
  return left > 0 && --left == 0;
}

inline char* Path::place(const End& e) const {
  char* base = buffer(e.conn, NCCL_PROTO_SIMPLE);
  if (char* there = e.fifo.place(e.slot(), base)) return there;
  const int64_t slot = GET(*e.conn, stepSize) ? (int64_t)GET(*e.conn, stepSize) : step1;
  return base + e.slot() * slot;
}

inline void Path::simple(const Step& s) {
  const int elt = o.elementSize, steps = o.stepsPerSlice;
  const int64_t most = step1 / (o.p2p ? 1 : elt) * steps;
  int64_t slice = SINCE(2, 5) ? std::max<int64_t>(divup(s.n, 16 * o.slices) * 16, most / 32) : most;
  int64_t off = 0;
  for (int k = 0; k < o.slices; k++, off += slice) {
    slice = std::max<int64_t>(0, std::min(slice, s.n - off));
    char *in[kMax] = {}, *out[kMax] = {};
    if (s.recv) for (int i = 0; i < receives; i++) {
      End& e = rx[i];
      if (!b.fibers->wait([&] { return load(e.conn->tail) >= e.step + (uint64_t)steps; })) return;
      in[i] = !e.registered ? place(e) : o.p2p || !s.recvInPlace ? nullptr : s.recvInPlace + off * elt;
    }
    if (s.send) for (int i = 0; i < sends; i++) {
      End& e = tx[i];
      if (!credit(e, steps)) return;
      e.fifo.size(e.slot(), slice * elt);
      out[i] = !e.registered ? place(e) : o.p2p || !s.recv || !s.sendInPlace ? nullptr : s.sendInPlace + off * elt;
    }
    if (slice > 0 && !o.offload) move(s, s.src ? s.src + off * elt : nullptr, s.dst ? s.dst + off * elt : nullptr, slice, in, out);
    if (slice > 0 && s.send && out[0] && spoiled()) out[0][0] ^= 1;
    if (s.recv) for (int i = 0; i < receives; i++) rx[i].step += (uint64_t)steps, store(rx[i].conn->head, rx[i].step);
    if (s.send) for (int i = 0; i < sends; i++) tx[i].step += (uint64_t)steps, store(tx[i].conn->tail, tx[i].step);
  }
}

// Reduces own source and what was received, into own destination and what is sent.
inline void Path::move(const Step& s, const char* src, char* dst, int64_t n, char** in, char** out) {
  const size_t bytes = (size_t)(n * o.elementSize), count = (size_t)n;
  const bool before = src && s.before && o.reducer.scalesBefore(), after = s.after && o.reducer.scalesAfter();
  int sources = src ? 1 : 0;
  for (int i = 0; i < kMax; i++) sources += in[i] != nullptr;
  if (!sources) return;

  const char* from = src;
  if (sources == 1 && !before && !after) {
    for (int i = 0; i < kMax; i++) if (in[i]) from = in[i];
  } else {
    char* acc = dst;  // in a place that is no source, if there is one
    if (!acc || acc == src) for (int i = kMax - 1; i >= 0; i--) if (out[i]) acc = out[i];
    bool clean = acc && (!src || acc == src || acc >= src + bytes || src >= acc + bytes);
    for (int i = 0; i < kMax; i++) clean = clean && acc != in[i];
    if (!clean) {
      spare.resize(bytes);
      acc = spare.data();
    }
    bool any = false;
    if (src) {
      if (acc != src) memcpy(acc, src, bytes);
      if (before) o.reducer.before(acc, count);
      any = true;
    }
    for (int i = 0; i < kMax; i++) {
      if (!in[i]) continue;
      if (any) o.reducer.add(acc, in[i], count);
      else memcpy(acc, in[i], bytes);
      any = true;
    }
    if (after) o.reducer.after(acc, count);
    from = acc;
  }
  if (dst && dst != from) memmove(dst, from, bytes);
  for (int i = 0; i < kMax; i++) if (out[i] && out[i] != from) memcpy(out[i], from, bytes);
}
}  // namespace simgpu
