#include "kernels.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { MAX = 2 };

enum { NOT = -1 };

// By ncclDataType_t.
static const struct {
	size_t size;
	int plain;  // the accumulator's index among the plain types
	int narrow; // the type's own among the narrow ones
} types[WF_TYPES] = {
    {1, WF_INT8, NOT},  {1, WF_UINT8, NOT},  {4, WF_INT32, NOT},      {4, WF_UINT32, NOT},
    {8, WF_INT64, NOT}, {8, WF_UINT64, NOT}, {2, WF_FLOAT, WF_HALF},  {4, WF_FLOAT, NOT},
    {8, WF_DOUBLE, NOT}, {2, WF_FLOAT, WF_BFLOAT}, {1, WF_FLOAT, WF_E4M3}, {1, WF_FLOAT, WF_E5M2},
};

// What is reduced at once: a block of each source.
struct block {
	void* dst;
	const void* const* srcs;
	size_t k, at, n; // at: where the block begins in the sources, in bytes
	void* sum;       // for what is between
};

static const void* source(const struct block* b, size_t i) { return (const char*)b->srcs[i] + b->at; }

// Sources become dst, of their own type.
static void reduce_alike(wf_fold* const* pair, unsigned op, const struct block* b) {
	const void* left = source(b, 0);
	if (b->k == 1) // the larger of a number and itself is that number; a NaN becomes the one it should be
		pair[MAX](b->dst, left, left, b->n);
	for (size_t i = 1; i < b->k; i++) {
		void* to = i + 1 == b->k ? b->dst : b->sum;
		pair[op](to, left, source(b, i), b->n);
		left = to;
	}
}

// Elements become floats.
static void reduce_widened(const struct wf_narrow* t, unsigned op, const struct block* b) {
	t->widen(b->dst, source(b, 0), b->n);
	for (size_t i = 1; i < b->k; i++)
		t->fold[op](b->dst, b->dst, source(b, i), b->n);
}

// Elements, or floats where acc is set, become elements.
static void reduce_narrow(const struct wf_plain* floats, const struct wf_narrow* t, unsigned op, int acc,
                          const struct block* b) {
	if (acc && b->k == 1) {
		t->round(b->dst, source(b, 0), b->n);
	} else if (!acc && (b->k <= 2 || op >= MAX)) {
		reduce_alike(t->pair, op, b);
	} else {
		struct block wide = *b;
		wide.dst = b->sum;
		if (acc)
			reduce_alike(floats->pair, op, &wide);
		else
			reduce_widened(t, op, &wide);
		t->round(b->dst, b->sum, b->n);
	}
}

// The thread may be one that some library has told to flush subnormal numbers to zero, or to round otherwise.
#if defined(__x86_64__)
static unsigned float_mode(void) { return _mm_getcsr(); }
static void set_float_mode(unsigned mode) { _mm_setcsr(mode); }
enum { USUAL_MODE = 0x1f80, OF_MODE = 0xffc0 };
#elif defined(__aarch64__)
static unsigned long float_mode(void) {
	unsigned long mode;
	__asm__ volatile("mrs %0, fpcr" : "=r"(mode));
	return mode;
}
static void set_float_mode(unsigned long mode) { __asm__ volatile("msr fpcr, %0" ::"r"(mode)); }
enum { USUAL_MODE = 0, OF_MODE = 0x7ffffff };
#endif

void wf_reduce(const struct wf_cpu* cpu, unsigned type, unsigned op, void* dst, int dst_acc, const void* const* srcs,
               size_t k, int srcs_acc, size_t n) {
	double sum[WF_BLOCK];
	const struct wf_plain* plain = &cpu->plain[types[type].plain];
	const struct wf_narrow* narrow = types[type].narrow == NOT ? NULL : &cpu->narrow[types[type].narrow];
	size_t dst_size = dst_acc ? plain->size : types[type].size;
	size_t src_size = srcs_acc ? plain->size : types[type].size;
	unsigned long mode = float_mode();
	if ((mode & OF_MODE) != USUAL_MODE)
		set_float_mode(USUAL_MODE);
	for (size_t i = 0; i < n; i += WF_BLOCK) {
		struct block b = {(char*)dst + i * dst_size, srcs, k, i * src_size, n - i < WF_BLOCK ? n - i : WF_BLOCK, sum};
		if (narrow == NULL || (srcs_acc && dst_acc))
			reduce_alike(plain->pair, op, &b);
		else if (dst_acc)
			reduce_widened(narrow, op, &b);
		else
			reduce_narrow(plain, narrow, op, srcs_acc, &b);
	}
	if ((mode & OF_MODE) != USUAL_MODE)
		set_float_mode(mode);
}
