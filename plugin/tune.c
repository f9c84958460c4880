/* tune.c: getCollInfo of the tuner. A context is the number of a set of vetoes that nothing changes any more: one that
 * is stale does no harm, and 0 forbids nothing. Nothing fails here, since a failure would fail the collective. The
 * choice must be the same on every rank: it depends on nothing but the arguments and the set.
 *
 * weft_tune_init and weft_tune_finalize are Go. */
#include "tune.h"

#include <string.h>

#include "zz_slow.h"

#define SETS 256 /* communicators of the same shape share one */

static struct weft_vetoes kept[SETS];
static uintptr_t sets;

uintptr_t weft_tune_keep(const struct weft_vetoes* vetoes) {
	for (uintptr_t i = 0; i < sets; i++)
		if (memcmp(&kept[i], vetoes, sizeof *vetoes) == 0) return i + 1;
	if (sets == SETS) return 0;
	kept[sets] = *vetoes;
	return ++sets;
}

/* Whether what is left when the vetoed algorithms go can do the collective: the user may have named one that goes. */
static bool leaves_any(const uint64_t* sizes, int bit, const float* cost, int algos, int protos) {
	for (int a = 0; a < algos; a++) {
		if (a <= NCCL_ALGO_PAT && sizes[a] >> bit & 1) continue;
		for (int p = 0; p < protos; p++)
			if (cost[a * protos + p] >= 0) return true;
	}
	return false;
}

int weft_tune_getCollInfo(uintptr_t context, ncclFunc_t collType, size_t nBytes, float** collCostTable, int numAlgo,
		int numProto) {
	float* cost = (float*)(void*)collCostTable; /* an array, whatever its type says */
	if (!context || context > SETS || !cost || (unsigned)collType > ncclFuncAllReduce) return ncclSuccess;
	const uint64_t* sizes = kept[context - 1].sizes[collType];
	int bit = nBytes ? 63 - __builtin_clzll(nBytes) : 0;
	if (!leaves_any(sizes, bit, cost, numAlgo, numProto)) return ncclSuccess;
	for (int a = 0; a < numAlgo && a <= NCCL_ALGO_PAT; a++)
		for (int p = 0; sizes[a] >> bit & 1 && p < numProto; p++) cost[a * numProto + p] = NCCL_ALGO_PROTO_IGNORE;
	return ncclSuccess;
}
