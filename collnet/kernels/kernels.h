// Reductions of buffers, element by element. A type is an ncclDataType_t, an operation one of the first four of
// ncclRedOp_t. A result is what NCCL's kernels make of the sources (src/device/reduce_kernel.h), unless said:
// - Integers wrap; signed ones are compared as signed.
// - Floating-point arithmetic rounds to nearest, ties to even, and keeps subnormal numbers.
// - A NaN becomes the one that CUDA makes: 0x7fffffff in float, 0x7fff in half and bfloat16, 0x7f in both types of
//   8 bits; and by the same pattern 0x7fffffffffffffff in double, where a GPU may keep an operand's payload.
// - max and min are fmax and fmin, __hmax and __hmin: of a number and a NaN, the number; -0 is less than +0.
// - Types of 8 and 16 bits are accumulated in float and rounded once, where a GPU rounds after each source, and types
//   of 8 bits to half before that. Of two sources that is the same: the type between has over twice the places.
// - What is too large becomes infinity; in types of 8 bits the largest number, as does infinity (__NV_SATFINITE).
#ifndef WF_KERNELS_H
#define WF_KERNELS_H

#include <stddef.h>

#pragma GCC visibility push(hidden)

enum { WF_TYPES = 12, WF_OPS = 4, WF_BLOCK = 2048 };
enum { WF_INT8, WF_UINT8, WF_INT32, WF_UINT32, WF_INT64, WF_UINT64, WF_FLOAT, WF_DOUBLE, WF_PLAIN };
enum { WF_HALF, WF_BFLOAT, WF_E4M3, WF_E5M2, WF_NARROW };

// Of n elements, at most WF_BLOCK. dst may be a source of its own element size; no buffer needs to be aligned.
typedef void wf_fold(void* dst, const void* a, const void* b, size_t n);
typedef void wf_cast(void* dst, const void* src, size_t n);

// What is done in the accumulator's own type.
struct wf_plain {
	size_t size;
	wf_fold* pair[WF_OPS];
};

// What is done with a type that is accumulated in float.
struct wf_narrow {
	wf_fold* pair[WF_OPS]; // elements a and b to elements
	wf_fold* fold[WF_OPS]; // float a and element b to float
	wf_cast* widen;        // elements to float
	wf_cast* round;        // float to elements
};

// What a kind of CPU has. The results of all kinds are the same to the bit.
struct wf_cpu {
	const char* name;
	struct wf_plain plain[WF_PLAIN];
	struct wf_narrow narrow[WF_NARROW];
};

// wf_cpus returns the i-th kind that this CPU is, the best first; NULL after the last, which every CPU is.
const struct wf_cpu* wf_cpus(int i);

// wf_reduce reduces k >= 1 sources of n elements in their order. acc says whether dst, and whether all sources, are of
// the accumulator's type. dst may be a source of its own element size.
void wf_reduce(const struct wf_cpu* cpu, unsigned type, unsigned op, void* dst, int dst_acc, const void* const* srcs,
               size_t k, int srcs_acc, size_t n);

#pragma GCC visibility pop

#endif
