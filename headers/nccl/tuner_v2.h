/* Tuner plugin, version 2: looked up by NCCL 2.21.5 and later.
 * Every call has its communicator's context. */
#ifndef WEFT_NCCL_TUNER_V2_H
#define WEFT_NCCL_TUNER_V2_H

#include "common.h"
#include "tuner_algo.h"

/* ncclTunerPlugin_v2 */
typedef struct {
  /* What the log calls the plugin. */
  const char* name;
  /* Once per communicator, with its size. What fails here fails the communicator. */
  ncclResult_t (*init)(size_t nRanks, size_t nNodes, ncclDebugLogger_t logFunction, void** context);
  /* Before each collective of nBytes; numPipeOps are the operations of its group. What is left
   * as it was, NCCL decides; algorithm and protocol are set together or not at all. */
  ncclResult_t (*getCollInfo)(void* context, ncclFunc_t collType, size_t nBytes, int collNetSupport,
                              int nvlsSupport, int numPipeOps, int* algorithm, int* protocol,
                              int* nChannels);
  /* The communicator goes; no call of it follows. */
  ncclResult_t (*destroy)(void* context);
} ncclTuner_v2_t;

#endif
