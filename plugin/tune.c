/* tune.c: getCollInfo and getChunkSize of the tuner. A context is the number of a set of vetoes that does not change
 * while it is kept; 0 forbids nothing. Nothing fails here, since a failure would fail the collective. The choice must
 * be the same on every rank: it depends on nothing but the arguments and the set.
 *
 * weft_tune_init and weft_tune_finalize are Go. */
#include "tune.h"

#include <string.h>

#include "zz_slow.h"

#define SETS 4096 /* communicators with equal sets share one */

static struct weft_vetoes kept[SETS];
static uint32_t holders[SETS]; /* communicators that have it; 0: the place is free */

uintptr_t weft_tune_keep(const struct weft_vetoes* vetoes) {
	uintptr_t at = SETS;
	for (uintptr_t i = 0; i < SETS; i++) {
		if (!holders[i] && at == SETS) at = i;
		if (holders[i] && memcmp(&kept[i], vetoes, sizeof *vetoes) == 0) {
			at = i;
			break;
		}
	}
	if (at == SETS) return 0;
	if (!holders[at]++) kept[at] = *vetoes;
	return at + 1;
}

void weft_tune_drop(uintptr_t set) {
	if (set && set <= SETS && holders[set - 1]) holders[set - 1]--;
}

/* What goes through collNet between nodes: on several, NVLS does; its tree does not. */
static bool offloaded(int algo) {
	return algo == NCCL_ALGO_COLLNET_DIRECT || algo == NCCL_ALGO_COLLNET_CHAIN || algo == NCCL_ALGO_NVLS;
}

/* Where the cheapest cost of what does not go through collNet is: algorithm times protos plus protocol. -1: there is
 * none, since the user has left NCCL nothing else. */
static int otherwise(const float* cost, int algos, int protos) {
	int best = -1;
	for (int i = 0; i < algos * protos; i++)
		if (!offloaded(i / protos) && cost[i] >= 0 && (best < 0 || cost[i] < cost[best])) best = i;
	return best;
}

/* The sizes that are forbidden beside it; beside one that the model does not know, those that are beside any. */
static uint64_t forbidden(const struct weft_vetoes* v, ncclFunc_t collType, int algo, int proto) {
	if (algo <= NCCL_ALGO_RING && proto <= NCCL_PROTO_SIMPLE) return v->sizes[collType][algo][proto];
	uint64_t all = 0;
	for (int a = 0; a <= NCCL_ALGO_RING; a++)
		for (int p = 0; p <= NCCL_PROTO_SIMPLE; p++) all |= v->sizes[collType][a][p];
	return all;
}

int weft_tune_getCollInfo(uintptr_t context, ncclFunc_t collType, size_t nBytes, float** collCostTable, int numAlgo,
		int numProto) {
	float* cost = (float*)(void*)collCostTable; /* an array, whatever its type says */
	if (!context || context > SETS || !cost || (unsigned)collType > ncclFuncAllReduce) return ncclSuccess;
	int best = otherwise(cost, numAlgo, numProto);
	int bit = nBytes ? 63 - __builtin_clzll(nBytes) : 0;
	if (best < 0) return ncclSuccess;
	uint64_t sizes = forbidden(&kept[context - 1], collType, best / numProto, best % numProto);
	if (!(sizes >> bit & 1)) return ncclSuccess;
	for (int i = 0; i < numAlgo * numProto; i++)
		if (offloaded(i / numProto)) cost[i] = NCCL_ALGO_PROTO_IGNORE;
	return ncclSuccess;
}

/* NCCL has collNet reduce whole chunks, whatever of one is data, and makes none smaller than 32 KiB (2.30.7,
 * calcCollChunking in src/enqueue.cc). So it is told what a small all-reduce needs, in grains, to which it cuts. */
#define GRAIN 512 /* 2.30.7, ncclProtoGrainSize of Simple */

int weft_tune_getChunkSize(uintptr_t context, ncclFunc_t collType, size_t nBytes, int algo, int nChannels,
		size_t* chunkSize) {
	if (!context || collType != ncclFuncAllReduce || algo != NCCL_ALGO_COLLNET_CHAIN) return ncclSuccess;
	if (!nBytes || nChannels < 1) return ncclSuccess;
	size_t needed = ((nBytes - 1) / (size_t)nChannels / GRAIN + 1) * GRAIN;
	if (needed < *chunkSize) *chunkSize = needed;
	return ncclSuccess;
}
