#include "kernels.h"
#include "numbers.h"

// The kinds of CPU. What is written for a kind is what compilers do not find: conversions of halves in hardware.

#define HOW_e4m3 LOOP
#define HOW_e5m2 LOOP

#define CPU portable
#define NAME "portable"
#define TARGET
#define HOW_half LOOP
#define HOW_bfloat LOOP
#include "loops.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,f16c")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
enum { TO_NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };

AVX2 ALWAYS __m256 load_half_avx2(const void* p) { return _mm256_cvtph_ps(_mm_loadu_si128(p)); }
AVX2 ALWAYS __m256 load_avx2(const void* p) { return _mm256_loadu_ps(p); }
AVX2 ALWAYS __m256 sum_avx2(__m256 a, __m256 b) { return _mm256_add_ps(a, b); }
AVX2 ALWAYS __m256 prod_avx2(__m256 a, __m256 b) { return _mm256_mul_ps(a, b); }

// x where it is a number, else y.
AVX2 ALWAYS __m256 number_avx2(__m256 x, __m256 y) { return _mm256_blendv_ps(x, y, _mm256_cmp_ps(x, x, _CMP_UNORD_Q)); }

// The instructions return the second operand of equal ones, which zeros of both signs are.
AVX2 ALWAYS __m256 max_avx2(__m256 a, __m256 b) {
	__m256 x = number_avx2(a, b), y = number_avx2(b, a);
	return _mm256_and_ps(_mm256_max_ps(x, y), _mm256_max_ps(y, x));
}

AVX2 ALWAYS __m256 min_avx2(__m256 a, __m256 b) {
	__m256 x = number_avx2(a, b), y = number_avx2(b, a);
	return _mm256_or_ps(_mm256_min_ps(x, y), _mm256_min_ps(y, x));
}

AVX2 ALWAYS __m256 quiet_avx2(__m256 x) { return number_avx2(x, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff))); }
AVX2 ALWAYS void store_avx2(void* p, __m256 x) { _mm256_storeu_ps(p, quiet_avx2(x)); }
AVX2 ALWAYS void store_half_avx2(void* p, __m256 x) { _mm_storeu_si128(p, _mm256_cvtps_ph(quiet_avx2(x), TO_NEAREST)); }

#define CPU avx2
#define NAME "avx2"
#define TARGET AVX2
#define LANES 8
#define HOW_half VECTORS
#define HOW_bfloat LOOP
#include "loops.h"

AVX512 ALWAYS __m512 load_half_avx512(const void* p) { return _mm512_cvtph_ps(_mm256_loadu_si256(p)); }
AVX512 ALWAYS __m512 load_avx512(const void* p) { return _mm512_loadu_ps(p); }
AVX512 ALWAYS __m512 sum_avx512(__m512 a, __m512 b) { return _mm512_add_ps(a, b); }
AVX512 ALWAYS __m512 prod_avx512(__m512 a, __m512 b) { return _mm512_mul_ps(a, b); }

// Of a number and a quiet NaN, the number; what was converted, or stored here, is quiet. 4 is the sign of the result.
AVX512 ALWAYS __m512 max_avx512(__m512 a, __m512 b) { return _mm512_range_ps(a, b, 4 | 1); }
AVX512 ALWAYS __m512 min_avx512(__m512 a, __m512 b) { return _mm512_range_ps(a, b, 4 | 0); }

// By the kind of number, from 0 on: a quiet NaN and another keep the first operand, all others take the second.
AVX512 ALWAYS __m512 quiet_avx512(__m512 x) {
	__m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fffffff));
	return _mm512_fixupimm_ps(nan, x, _mm512_set1_epi32(0x11111100), 0);
}

AVX512 ALWAYS void store_avx512(void* p, __m512 x) { _mm512_storeu_ps(p, quiet_avx512(x)); }
AVX512 ALWAYS void store_half_avx512(void* p, __m512 x) {
	_mm256_storeu_si256(p, _mm512_cvtps_ph(quiet_avx512(x), TO_NEAREST));
}

#define CPU avx512
#define NAME "avx512"
#define TARGET AVX512
#define LANES 16
#define HOW_half VECTORS
#define HOW_bfloat LOOP
#include "loops.h"
#endif

#ifdef __aarch64__
#include <arm_neon.h>

ALWAYS float32x4_t load_half_neon(const void* p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
ALWAYS float32x4_t load_neon(const void* p) { return vld1q_f32(p); }
ALWAYS float32x4_t sum_neon(float32x4_t a, float32x4_t b) { return vaddq_f32(a, b); }
ALWAYS float32x4_t prod_neon(float32x4_t a, float32x4_t b) { return vmulq_f32(a, b); }

// Of a number and a quiet NaN, the number; what was converted, or stored here, is quiet.
ALWAYS float32x4_t max_neon(float32x4_t a, float32x4_t b) { return vmaxnmq_f32(a, b); }
ALWAYS float32x4_t min_neon(float32x4_t a, float32x4_t b) { return vminnmq_f32(a, b); }

ALWAYS float32x4_t quiet_neon(float32x4_t x) {
	return vbslq_f32(vceqq_f32(x, x), x, vreinterpretq_f32_u32(vdupq_n_u32(0x7fffffff)));
}

ALWAYS void store_neon(void* p, float32x4_t x) { vst1q_f32(p, quiet_neon(x)); }
ALWAYS void store_half_neon(void* p, float32x4_t x) { vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(quiet_neon(x)))); }

#define CPU neon
#define NAME "neon"
#define TARGET
#define LANES 4
#define HOW_half VECTORS
#define HOW_bfloat LOOP
#include "loops.h"
#endif

#ifdef __x86_64__
static int has_avx512(void) {
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

// Compilers have no name for half conversions (F16C), which every CPU with AVX2 has; a virtual one may hide them.
static int has_avx2(void) {
	unsigned a, b, c = 0, d;
	return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

const struct wf_cpu* wf_cpus(int i) {
	const struct wf_cpu* all[4] = {0};
	int n = 0;
#if defined(__x86_64__)
	if (has_avx512())
		all[n++] = &avx512;
	if (has_avx2())
		all[n++] = &avx2;
#elif defined(__aarch64__)
	all[n++] = &neon;
#endif
	all[n++] = &portable;
	return i < n ? all[i] : NULL;
}
