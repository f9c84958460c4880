/* kernels.c: all kinds that this CPU is reduce the same random buffers to the same bits, within buffers that end where
 * the elements do, and whatever the thread's floating-point mode. Arguments: seed and rounds, which the other drivers
 * take, too. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

#include "check.h"

#define MOST 2100 // elements: blocks, and parts of one
#define SOURCES 4

static const size_t sizes[WF_TYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
static uint64_t seed = 1;

static uint32_t draw(void) {
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 32);
}

// Zeros and subnormal numbers of every type among others.
static void* buffer(size_t n) {
	unsigned char* p = malloc(n + 1);
	CHECK(p, "%zu bytes", n);
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)(draw() % 4 ? draw() : draw() % 2 << 7);
	return p;
}

#if defined(__x86_64__)
static void flush_to_zero(void) { __builtin_ia32_ldmxcsr(0xffc0); }
static uint64_t mode(void) { return __builtin_ia32_stmxcsr() & 0xffc0; }
#elif defined(__aarch64__)
static void flush_to_zero(void) { __asm__ volatile("msr fpcr, %0" ::"r"(0x3c00000ul)); }
static uint64_t mode(void) {
	uint64_t m;
	__asm__ volatile("mrs %0, fpcr" : "=r"(m));
	return m;
}
#endif

int main(int argc, char** argv) {
	seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	int rounds = argc > 2 ? 100 * atoi(argv[2]) : 400;
	uint64_t usual = mode();
	for (int round = 0; round < rounds; round++) {
		unsigned type = draw() % WF_TYPES, op = draw() % WF_OPS;
		size_t n = draw() % 2 ? draw() % MOST : draw() % 70, k = 1 + draw() % SOURCES;
		int dst_acc = draw() % 2, srcs_acc = draw() % 2;
		size_t acc = type == 6 || type >= 9 ? 4 : sizes[type];
		size_t in = srcs_acc ? acc : sizes[type], out = dst_acc ? acc : sizes[type];
		const void* srcs[SOURCES];
		for (size_t i = 0; i < k; i++)
			srcs[i] = buffer(n * in);
		char *first = buffer(n * out), *other = buffer(n * out);
		wf_reduce(wf_cpus(0), type, op, first, dst_acc, srcs, k, srcs_acc, n);
		for (int i = 0; wf_cpus(i); i++) {
			flush_to_zero();
			uint64_t set = mode();
			wf_reduce(wf_cpus(i), type, op, other, dst_acc, srcs, k, srcs_acc, n);
			CHECK(mode() == set && set != usual, "the mode is %#lx", (unsigned long)mode());
			CHECK(!memcmp(first, other, n * out), "%s, type %u, operation %u, %zu elements of %zu: not as %s",
			      wf_cpus(i)->name, type, op, n, k, wf_cpus(0)->name);
		}
		for (size_t i = 0; i < k; i++)
			free((void*)(uintptr_t)srcs[i]);
		free(first);
		free(other);
	}
	printf("kernels: %d reductions, the same by each kind of CPU\n", rounds);
	return 0;
}
