/* Tuner plugin, version 3: looked up by NCCL 2.22.3 and later.
 * Costs of all algorithms instead of a choice of one. */
#ifndef WEFT_NCCL_TUNER_V3_H
#define WEFT_NCCL_TUNER_V3_H

#include "common.h"
#include "tuner_algo.h"

/* ncclTunerPlugin_v3 */
typedef struct {
  /* What the log calls the plugin. */
  const char* name;
  /* Once per communicator, with its size. What fails here fails the communicator. */
  ncclResult_t (*init)(size_t nRanks, size_t nNodes, ncclDebugLogger_t logFunction, void** context);
  /* Before each collective of nBytes; numPipeOps are the operations of its group. collCostTable
   * is really float[numAlgo][numProto], what NCCL expects in microseconds; the cheapest is chosen.
   * *nChannels is 0; what is left so, NCCL decides. */
  ncclResult_t (*getCollInfo)(void* context, ncclFunc_t collType, size_t nBytes, int numPipeOps,
                              float** collCostTable, int numAlgo, int numProto, int* nChannels);
  /* The communicator goes; no call of it follows. */
  ncclResult_t (*destroy)(void* context);
} ncclTuner_v3_t;

#endif
