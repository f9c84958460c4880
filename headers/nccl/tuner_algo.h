/* Algorithms and protocols, as the tables of tuners number them. None of the numbers
 * ever changed; a release knows the first ones, and says how many. */
#ifndef WEFT_NCCL_TUNER_ALGO_H
#define WEFT_NCCL_TUNER_ALGO_H

#include "common.h"

#define NCCL_ALGO_UNDEF -1
#define NCCL_ALGO_TREE 0
#define NCCL_ALGO_RING 1
#define NCCL_ALGO_COLLNET_DIRECT 2
#define NCCL_ALGO_COLLNET_CHAIN 3
#define NCCL_ALGO_NVLS 4
#define NCCL_ALGO_NVLS_TREE 5
#define NCCL_ALGO_PAT 6

#define NCCL_PROTO_UNDEF -1
#define NCCL_PROTO_LL 0
#define NCCL_PROTO_LL128 1
#define NCCL_PROTO_SIMPLE 2

/* The cost of what must not be chosen. */
#define NCCL_ALGO_PROTO_IGNORE -1.0

#endif
