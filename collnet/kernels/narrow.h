// The narrow types for one kind of CPU. Its name is CPU, what its functions are compiled for TARGET.

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define FUNCTION(name) TARGET static void JOIN(name, CPU)

#define PAIR(type, op)                                                                               \
	FUNCTION(type##_pair_##op)(void *dst, const void *as, const void *bs, size_t n) {            \
		const type *a = as, *b = bs;                                                         \
		type *z = dst;                                                                       \
		INDEPENDENT                                                                          \
		for (size_t i = 0; i < n; i++)                                                       \
			z[i] = round_##type(op##32(widen_##type(a[i]), widen_##type(b[i])));         \
	}

#define FOLD(type, op)                                                                               \
	FUNCTION(type##_fold_##op)(void *dst, const void *as, const void *bs, size_t n) {            \
		const float32 *a = as;                                                               \
		const type *b = bs;                                                                  \
		float32 *z = dst;                                                                    \
		INDEPENDENT                                                                          \
		for (size_t i = 0; i < n; i++)                                                       \
			z[i] = quiet32(op##32(a[i], widen_##type(b[i])));                            \
	}

#define WIDE(type)                                                            \
	FUNCTION(type##_widen)(void *dst, const void *src, size_t n) {        \
		const type *a = src;                                          \
		float32 *z = dst;                                             \
		INDEPENDENT                                                   \
		for (size_t i = 0; i < n; i++)                                \
			z[i] = quiet32(widen_##type(a[i]));                   \
	}

#define ROUNDED(type)                                                         \
	FUNCTION(type##_round)(void *dst, const void *src, size_t n) {        \
		const float32 *a = src;                                       \
		type *z = dst;                                                \
		INDEPENDENT                                                   \
		for (size_t i = 0; i < n; i++)                                \
			z[i] = round_##type(a[i]);                            \
	}

#define EACH_OP(what, type) what(type, sum) what(type, prod) what(type, max) what(type, min)
#define FUNCTIONS(type) EACH_OP(PAIR, type) EACH_OP(FOLD, type) WIDE(type) ROUNDED(type)
FUNCTIONS(half)
FUNCTIONS(bfloat)
FUNCTIONS(e4m3)
FUNCTIONS(e5m2)

#define NAMED(type, op) JOIN(type##_##op, CPU),
#define PAIR_NAME(type, op) NAMED(type, pair_##op)
#define FOLD_NAME(type, op) NAMED(type, fold_##op)
#define TABLE(type) \
	{{EACH_OP(PAIR_NAME, type)}, {EACH_OP(FOLD_NAME, type)}, NAMED(type, widen) NAMED(type, round)}
static const struct wf_cpu CPU = {NAME, {TABLE(half), TABLE(bfloat), TABLE(e4m3), TABLE(e5m2)}};

#undef JOIN_
#undef JOIN
#undef FUNCTION
#undef PAIR
#undef FOLD
#undef WIDE
#undef ROUNDED
#undef EACH_OP
#undef FUNCTIONS
#undef NAMED
#undef PAIR_NAME
#undef FOLD_NAME
#undef TABLE
#undef CPU
#undef NAME
#undef TARGET
