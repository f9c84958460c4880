#include "kernels.h"
#include "numbers.h"

// The types that are accumulated as they are.

#define PAIR(type, op, value)                                                             \
	static void type##_##op(void *dst, const void *as, const void *bs, size_t n) {    \
		const type *x = as, *y = bs;                                              \
		type *z = dst;                                                            \
		INDEPENDENT                                                               \
		for (size_t i = 0; i < n; i++) {                                          \
			__typeof__(+*x) a = x[i], b = y[i];                               \
			z[i] = (value);                                                   \
		}                                                                         \
	}

#define TABLE(name, type, arithmetic)                                                              \
	const struct wf_plain name = {                                                             \
	    sizeof(type),                                                                          \
	    {arithmetic##_sum, arithmetic##_prod, type##_max, type##_min},                         \
	};

// Sums and products wrap, which C promises of unsigned types.
#define WRAPPING(type)            \
	PAIR(type, sum, a + b)    \
	PAIR(type, prod, a * b)
#define COMPARED(type)                    \
	PAIR(type, max, a > b ? a : b)    \
	PAIR(type, min, a < b ? a : b)

WRAPPING(uint8)
WRAPPING(uint32)
WRAPPING(uint64)
COMPARED(int8)
COMPARED(uint8)
COMPARED(int32)
COMPARED(uint32)
COMPARED(int64)
COMPARED(uint64)

PAIR(float32, sum, quiet32(a + b))
PAIR(float32, prod, quiet32(a * b))
PAIR(float32, max, quiet32(max32(a, b)))
PAIR(float32, min, quiet32(min32(a, b)))
PAIR(float64, sum, quiet64(a + b))
PAIR(float64, prod, quiet64(a * b))
PAIR(float64, max, quiet64(max64(a, b)))
PAIR(float64, min, quiet64(min64(a, b)))

TABLE(wf_int8, int8, uint8)
TABLE(wf_uint8, uint8, uint8)
TABLE(wf_int32, int32, uint32)
TABLE(wf_uint32, uint32, uint32)
TABLE(wf_int64, int64, uint64)
TABLE(wf_uint64, uint64, uint64)
TABLE(wf_float, float32, float32)
TABLE(wf_double, float64, float64)
