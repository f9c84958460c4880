/* tune.h: what the tuner forbids, in C, since it is asked before every collective. */
#ifndef WEFT_PLUGIN_TUNE_H
#define WEFT_PLUGIN_TUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nccl/common.h"
#include "nccl/tuner_algo.h"

/* For each collective, and for what NCCL would take otherwise, the sizes for which what goes through collNet is
 * forbidden: bit k is 2^k bytes up to twice that. */
struct weft_vetoes {
	uint64_t sizes[ncclFuncAllReduce + 1][NCCL_ALGO_RING + 1][NCCL_PROTO_SIMPLE + 1];
};

/* Keeps a set until it was dropped as often and returns its number, 1 and up; equal ones have the same. 0: there is no
 * room. Both from one thread at a time; what is dropped no thread may ask about any more. */
uintptr_t weft_tune_keep(const struct weft_vetoes* vetoes);
void weft_tune_drop(uintptr_t set);

#endif
