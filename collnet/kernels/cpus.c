#include "kernels.h"
#include "numbers.h"

// The kinds of CPU. What is written for a kind is what compilers do not find: conversions of halves in hardware.

#define HOW_bfloat LOOP
#define HOW_e4m3 LOOP
#define HOW_e5m2 LOOP

#define CPU portable
#define NAME "portable"
#define TARGET
#define HOW_half LOOP
#include "loops.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,f16c,fma")))
#define AVX512 __attribute__((target("avx2,f16c,fma,avx512f,avx512bw,avx512dq,avx512vl")))
enum { TO_NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };

AVX2 ALWAYS __m256 load_half_avx2(const void* p) { return _mm256_cvtph_ps(_mm_loadu_si128(p)); }
AVX2 ALWAYS __m256 load_avx2(const void* p) { return _mm256_loadu_ps(p); }

// Adders are busy with conversions, multipliers are not.
AVX2 ALWAYS __m256 sum_avx2(__m256 a, __m256 b) { return _mm256_fmadd_ps(a, _mm256_set1_ps(1), b); }
AVX2 ALWAYS __m256 prod_avx2(__m256 a, __m256 b) { return _mm256_mul_ps(a, b); }
AVX2 ALWAYS __m256 scaled_avx2(__m256 a, __m256 b) { return prod_avx2(prod_avx2(a, _mm256_set1_ps(256)), b); }

AVX2 ALWAYS __m256 quiet_avx2(__m256 x) {
	__m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
	return _mm256_blendv_ps(x, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

AVX2 ALWAYS void store_avx2(void* p, __m256 x) { _mm256_storeu_ps(p, quiet_avx2(x)); }
AVX2 ALWAYS void store_half_avx2(void* p, __m256 x) { _mm_storeu_si128(p, _mm256_cvtps_ph(quiet_avx2(x), TO_NEAREST)); }

#define CPU avx2
#define NAME "avx2"
#define TARGET AVX2
#define LANES 8
#define HOW_half VECTORS
#include "loops.h"

// By the kind of number, from 0 on: a quiet NaN and another keep the first operand, all others take the second.
enum { NAN_KEEPS = 0x11111100 };

AVX512 ALWAYS __m512 quiet_avx512(__m512 x, int as) {
	__m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(as));
	return _mm512_fixupimm_ps(nan, x, _mm512_set1_epi32(NAN_KEEPS), 0);
}

AVX512 ALWAYS __m512 load_half_avx512(const void* p) { return _mm512_cvtph_ps(_mm256_loadu_si256(p)); }
AVX512 ALWAYS __m512 load_avx512(const void* p) { return _mm512_loadu_ps(p); }
AVX512 ALWAYS __m512 sum_avx512(__m512 a, __m512 b) { return _mm512_add_ps(a, b); }
AVX512 ALWAYS __m512 prod_avx512(__m512 a, __m512 b) { return _mm512_mul_ps(a, b); }
AVX512 ALWAYS __m512 scaled_avx512(__m512 a, __m512 b) { return prod_avx512(prod_avx512(a, _mm512_set1_ps(256)), b); }
AVX512 ALWAYS void store_avx512(void* p, __m512 x) { _mm512_storeu_ps(p, quiet_avx512(x, 0x7fffffff)); }
AVX512 ALWAYS void store_half_avx512(void* p, __m512 x) {
	_mm256_storeu_si256(p, _mm512_cvtps_ph(quiet_avx512(x, 0x7fffffff), TO_NEAREST));
}

AVX512 ALWAYS __m512 low_avx512(__m512i x) { return _mm512_castsi512_ps(_mm512_slli_epi32(x, 16)); }
AVX512 ALWAYS __m512 high_avx512(__m512i x) {
	return _mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32(0xffff0000)));
}

AVX512 ALWAYS __m512i round_upper_avx512(__m512 x) {
	__m512i u = _mm512_castps_si512(quiet_avx512(x, 0x7fff0000));
	__mmask16 odd = _mm512_test_epi32_mask(u, _mm512_set1_epi32(0x10000));
	__m512i r = _mm512_add_epi32(u, _mm512_set1_epi32(0x7fff));
	return _mm512_mask_add_epi32(r, odd, u, _mm512_set1_epi32(0x8000));
}

// As BFLOAT_PAIR.
#define BFLOAT_PAIR_AVX512(op)                                                                                      \
	AVX512 static void bfloat_pair_##op##_avx512(void* dst, const void* as, const void* bs, size_t n) {         \
		const bfloat* a = as, *b = bs;                                                                      \
		bfloat* z = dst;                                                                                    \
		size_t i = 0;                                                                                       \
		for (; i + 32 <= n; i += 32) {                                                                      \
			__m512i x = _mm512_loadu_si512(a + i);                                                      \
			__m512i y = _mm512_loadu_si512(b + i);                                                      \
			__m512i low = round_upper_avx512(op##_avx512(low_avx512(x), low_avx512(y)));                \
			__m512i high = round_upper_avx512(op##_avx512(high_avx512(x), high_avx512(y)));             \
			low = _mm512_srli_epi32(low, 16);                                                           \
			_mm512_storeu_si512(z + i, _mm512_mask_blend_epi16(0xaaaaaaaa, low, high));                 \
		}                                                                                                   \
		bfloat_pair_##op##_portable(z + i, a + i, b + i, n - i);                                            \
	}
BFLOAT_PAIR_AVX512(sum)
BFLOAT_PAIR_AVX512(prod)

#define CPU avx512
#define NAME "avx512"
#define TARGET AVX512
#define LANES 16
#define HOW_half VECTORS
#define OWN_BFLOAT_PAIRS
#include "loops.h"

// Zen 4 does 512 bits in two turns: conversions in 256 are faster there.
#define load_half_zen4 load_half_avx2
#define load_zen4 load_avx2
#define sum_zen4 sum_avx2
#define prod_zen4 prod_avx2
#define scaled_zen4 scaled_avx2
#define bfloat_pair_sum_zen4 bfloat_pair_sum_avx512
#define bfloat_pair_prod_zen4 bfloat_pair_prod_avx512

AVX512 ALWAYS __m256 quiet_zen4(__m256 x) {
	__m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
	return _mm256_fixupimm_ps(nan, x, _mm256_set1_epi32(NAN_KEEPS), 0);
}

AVX512 ALWAYS void store_zen4(void* p, __m256 x) { _mm256_storeu_ps(p, quiet_zen4(x)); }
AVX512 ALWAYS void store_half_zen4(void* p, __m256 x) {
	_mm_storeu_si128(p, _mm256_cvtps_ph(quiet_zen4(x), TO_NEAREST));
}

#define CPU zen4
#define NAME "zen4"
#define TARGET AVX512
#define LANES 8
#define HOW_half VECTORS
#define OWN_BFLOAT_PAIRS
#include "loops.h"
#endif

#ifdef __aarch64__
#include <arm_neon.h>

ALWAYS float32x4_t load_half_neon(const void* p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
ALWAYS float32x4_t load_neon(const void* p) { return vld1q_f32(p); }
ALWAYS float32x4_t sum_neon(float32x4_t a, float32x4_t b) { return vaddq_f32(a, b); }
ALWAYS float32x4_t prod_neon(float32x4_t a, float32x4_t b) { return vmulq_f32(a, b); }
ALWAYS float32x4_t scaled_neon(float32x4_t a, float32x4_t b) { return vmulq_f32(vmulq_n_f32(a, 256), b); }

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
#include "loops.h"
#endif

#ifdef __x86_64__
// Compilers have no name for half conversions (F16C), which every CPU with AVX2 has; a virtual one may hide them.
static int has_avx2(void) {
	unsigned a, b, c = 0, d;
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __get_cpuid(1, &a, &b, &c, &d) &&
	       (c & bit_F16C);
}

static int has_avx512(void) {
	return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

// Of AMD's family 0x19, base and extension, only Zen 4 has AVX-512.
static int is_zen4(void) {
	unsigned a = 0, b, c, d;
	return __builtin_cpu_is("amd") && __get_cpuid(1, &a, &b, &c, &d) && (a >> 8 & 15) + (a >> 20 & 255) == 0x19;
}
#endif

const struct wf_cpu* wf_cpus(int i) {
	const struct wf_cpu* all[5] = {0};
	int n = 0;
#if defined(__x86_64__)
	if (has_avx512() && is_zen4())
		all[n++] = &zen4;
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
