// Reductions: an operation on a type, with the scaling that some have before or after.
#pragma once
#include "nccl.h"

#include <math.h>

namespace simgpu {
inline float fromHalf(uint16_t h) { _Float16 v; memcpy(&v, &h, sizeof v); return (float)v; }
inline uint16_t toHalf(float f) { const _Float16 v = (_Float16)f; uint16_t h; memcpy(&h, &v, sizeof h); return h; }
inline float fromBfloat(uint16_t b) { const uint32_t u = (uint32_t)b << 16; float f; memcpy(&f, &u, sizeof f); return f; }
inline uint16_t toBfloat(float f) { uint32_t u; memcpy(&u, &f, sizeof u); return (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16); }

struct Reducer {
  int op, type;
  uint64_t arg;  // the factor, the divisor, or what tells a minimum from a maximum

  // acc = acc (op) other, n elements; neither need be aligned.
  void add(void* acc, const void* other, size_t n) const {
    switch (type) {
      case ncclInt8: case ncclUint8: return integers<uint8_t>(acc, other, n);
      case ncclInt32: case ncclUint32: return integers<uint32_t>(acc, other, n);
      case ncclInt64: case ncclUint64: return integers<uint64_t>(acc, other, n);
      case ncclFloat32: return floats<float>(acc, other, n);
      case ncclFloat64: return floats<double>(acc, other, n);
      case ncclFloat16: return shorts<fromHalf, toHalf>(acc, other, n);
      case ncclBfloat16: return shorts<fromBfloat, toBfloat>(acc, other, n);
      default: unplayed("this data type");
    }
  }

  bool scalesBefore() const { return op == ncclDevPreMulSum; }
  bool scalesAfter() const { return op == ncclDevSumPostDiv; }
  void before(void* p, size_t n) const { if (scalesBefore()) scale(p, n); }

  void after(void* p, size_t n) const {
    if (!scalesAfter()) return;
    switch (type) {
      case ncclInt8: case ncclUint8: return divide<uint8_t, int8_t>(p, n);
      case ncclInt32: case ncclUint32: return divide<uint32_t, int32_t>(p, n);
      case ncclInt64: case ncclUint64: return divide<uint64_t, int64_t>(p, n);
      default: scale(p, n);
    }
  }

 private:
  template <typename T> T as() const { T v; memcpy(&v, &arg, sizeof v); return v; }
  template <typename T> static T load(const void* p, size_t i) { T v; memcpy(&v, (const char*)p + i * sizeof v, sizeof v); return v; }
  template <typename T> static void store(void* p, size_t i, T v) { memcpy((char*)p + i * sizeof v, &v, sizeof v); }

  // Signed numbers are compared as unsigned ones with some bits turned over, which arg says.
  template <typename T> T combine(T a, T b) const {
    if (op == ncclDevProd) return (T)(a * b);
    if (op == ncclDevMinMax) return (T)(a ^ (T)arg) < (T)(b ^ (T)arg) ? a : b;
    return (T)(a + b);
  }
  template <typename T> T combineFloats(T a, T b) const {
    if (op == ncclDevProd) return a * b;
    if (op == ncclDevMinMax) return (T)(arg & 1 ? fmax(a, b) : fmin(a, b));
    return a + b;
  }
  template <typename T> void integers(void* acc, const void* other, size_t n) const {
    for (size_t i = 0; i < n; i++) store<T>(acc, i, combine(load<T>(acc, i), load<T>(other, i)));
  }
  template <typename T> void floats(void* acc, const void* other, size_t n) const {
    for (size_t i = 0; i < n; i++) store<T>(acc, i, combineFloats(load<T>(acc, i), load<T>(other, i)));
  }
  template <float from(uint16_t), uint16_t to(float)> void shorts(void* acc, const void* other, size_t n) const {
    for (size_t i = 0; i < n; i++) store<uint16_t>(acc, i, to(combineFloats(from(load<uint16_t>(acc, i)), from(load<uint16_t>(other, i)))));
  }

  template <typename T> void multiply(void* p, size_t n) const {
    for (size_t i = 0; i < n; i++) store<T>(p, i, (T)(load<T>(p, i) * as<T>()));
  }
  template <float from(uint16_t), uint16_t to(float)> void multiplyShorts(void* p, size_t n) const {
    for (size_t i = 0; i < n; i++) store<uint16_t>(p, i, to(from(load<uint16_t>(p, i)) * from(as<uint16_t>())));
  }
  void scale(void* p, size_t n) const {
    switch (type) {
      case ncclInt8: case ncclUint8: return multiply<uint8_t>(p, n);
      case ncclInt32: case ncclUint32: return multiply<uint32_t>(p, n);
      case ncclInt64: case ncclUint64: return multiply<uint64_t>(p, n);
      case ncclFloat32: return multiply<float>(p, n);
      case ncclFloat64: return multiply<double>(p, n);
      case ncclFloat16: return multiplyShorts<fromHalf, toHalf>(p, n);
      case ncclBfloat16: return multiplyShorts<fromBfloat, toBfloat>(p, n);
      default: unplayed("this data type");
    }
  }

  // The divisor is shifted by one; the low bit says that the numbers are signed.
  template <typename U, typename S> void divide(void* p, size_t n) const {
    const uint64_t d = arg >> 1;
    for (size_t i = 0; i < n; i++) {
      const U v = load<U>(p, i);
      store<U>(p, i, arg & 1 ? (U)((S)v / (S)d) : (U)(v / (U)d));
    }
  }
};
}  // namespace simgpu
