/* Tuner plugin, version 5: looked up by NCCL 2.28.3 and later.
 * Communicators have names, and the constants of NCCL's model can be changed. */
#ifndef WEFT_NCCL_TUNER_V5_H
#define WEFT_NCCL_TUNER_V5_H

#include "common.h"
#include "tuner_algo.h"

#define NCCL_NUM_ALGORITHMS_V5 7
#define NCCL_NUM_PROTOCOLS_V5 3
#define NCCL_NUM_HW_LINKS_V5 3
#define NCCL_NUM_COMPCAPS_V5 4
#define NCCL_NUM_TUNING_SCALES_V5 3

/* The communicator's NVLink domains, and how many ranks the smallest and the largest have. */
typedef struct {
  int nNvlDomains;
  int minRanksPerNvlDomain;
  int maxRanksPerNvlDomain;
} ncclNvlDomainInfo_v5_t;

/* Latencies (us) by algorithm and protocol, also for each kind of link (NVLink, PCI, network);
 * bandwidths (GB/s) by GPU (Volta, Ampere, Hopper, Blackwell) and nodes (one, two, more). */
typedef struct {
  double baseLatencies[NCCL_NUM_ALGORITHMS_V5][NCCL_NUM_PROTOCOLS_V5];
  double hwLatencies[NCCL_NUM_HW_LINKS_V5][NCCL_NUM_ALGORITHMS_V5][NCCL_NUM_PROTOCOLS_V5];
  double llMaxBws[NCCL_NUM_COMPCAPS_V5][NCCL_NUM_TUNING_SCALES_V5];
  double perChMaxRingLL128Bws[NCCL_NUM_COMPCAPS_V5][NCCL_NUM_TUNING_SCALES_V5];
  double perChMaxTreeLL128Bws[NCCL_NUM_COMPCAPS_V5][NCCL_NUM_TUNING_SCALES_V5];
  double perChMaxTreeBws[NCCL_NUM_COMPCAPS_V5][NCCL_NUM_TUNING_SCALES_V5];
  double perChMaxNVLSTreeBws[NCCL_NUM_COMPCAPS_V5][NCCL_NUM_TUNING_SCALES_V5];
} ncclTunerConstants_v5_t;

/* ncclTunerPlugin_v5 */
typedef struct {
  /* What the log calls the plugin. */
  const char* name;
  /* Once per communicator, with its name and size, before NCCL's model is made of the constants,
   * which the plugin may change. What fails here fails the communicator. */
  ncclResult_t (*init)(void** ctx, uint64_t commId, size_t nRanks, size_t nNodes,
                       ncclDebugLogger_t logFunction, ncclNvlDomainInfo_v5_t* nvlDomainInfo,
                       ncclTunerConstants_v5_t* constants);
  /* Before each collective of nBytes; numPipeOps are the operations of its group. collCostTable
   * is really float[numAlgo][numProto], what NCCL expects in microseconds; the cheapest is chosen.
   * *nChannels is 0; what is left so, NCCL decides. regBuff: the buffers can be registered. */
  ncclResult_t (*getCollInfo)(void* context, ncclFunc_t collType, size_t nBytes, int numPipeOps,
                              float** collCostTable, int numAlgo, int numProto, int regBuff,
                              int* nChannels);
  /* The communicator goes; no call of it follows. */
  ncclResult_t (*finalize)(void* context);
} ncclTuner_v5_t;

#endif
