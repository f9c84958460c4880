// Only what NCCL's headers name when the host compiler reads them; a C program needs none of it.
#ifndef SIMGPU_FP16_H
#define SIMGPU_FP16_H
#include "cuda_runtime.h"
#ifdef __cplusplus
struct half { unsigned short x; };
struct half2 { half x, y; };
float __half2float(half);
typedef half __half;
half __float2half_rn(float);
float2 __half22float2(half2);
half2 __floats2half2_rn(float, float);
half2 __float22half2_rn(float2);
// The only one that runs on the host: a scalar of a pre-multiplied sum.
inline half __float2half(float f) {
  _Float16 v = (_Float16)f;
  half h;
  __builtin_memcpy(&h, &v, sizeof h);
  return h;
}
#endif
#endif
