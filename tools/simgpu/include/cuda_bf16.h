// NCCL up to 2.26 has ncclBfloat16 only when this says that the type exists.
#ifndef SIMGPU_BF16_H
#define SIMGPU_BF16_H
#include "cuda_runtime.h"
#define __CUDA_BF16_TYPES_EXIST__ 1
#ifdef __cplusplus
struct __nv_bfloat16 { unsigned short x; };
inline __nv_bfloat16 __float2bfloat16(float f) {
  unsigned u;
  __builtin_memcpy(&u, &f, sizeof u);
  __nv_bfloat16 b;
  b.x = (unsigned short)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
  return b;
}
#endif
#endif
