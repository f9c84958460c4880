#include "kernels.h"
#include "numbers.h"

// The narrow types on each kind of CPU.

#define CPU portable
#define NAME "portable"
#define TARGET
#include "narrow.h"

#ifdef __x86_64__
#define CPU avx2
#define NAME "avx2"
#define TARGET __attribute__((target("avx2,f16c")))
#include "narrow.h"

#define CPU avx512
#define NAME "avx512"
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#include "narrow.h"
#endif

const struct wf_cpu *wf_cpus(int i) {
	const struct wf_cpu *all[4] = {0};
	int n = 0;
#ifdef __x86_64__
	int has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
	if (has_avx512)
		all[n++] = &avx512;
	if (__builtin_cpu_supports("avx2"))
		all[n++] = &avx2;
#endif
	all[n++] = &portable;
	return i < n ? all[i] : NULL;
}
