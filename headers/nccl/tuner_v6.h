/* Tuner plugin, version 6: looked up by NCCL 2.30.3 and later.
 * The size of chunks can be changed. */
#ifndef WEFT_NCCL_TUNER_V6_H
#define WEFT_NCCL_TUNER_V6_H

#include "common.h"
#include "tuner_algo.h"
#include "tuner_v5.h"

typedef ncclNvlDomainInfo_v5_t ncclNvlDomainInfo_v6_t;

typedef ncclTunerConstants_v5_t ncclTunerConstants_v6_t;

/* ncclTunerPlugin_v6 */
typedef struct {
  /* What the log calls the plugin. */
  const char* name;
  /* Once per communicator, with its name and size, before NCCL's model is made of the constants,
   * which the plugin may change. What fails here fails the communicator. */
  ncclResult_t (*init)(void** ctx, uint64_t commId, size_t nRanks, size_t nNodes,
                       ncclDebugLogger_t logFunction, ncclNvlDomainInfo_v6_t* nvlDomainInfo,
                       ncclTunerConstants_v6_t* constants);
  /* Before each collective of nBytes; numPipeOps are the operations of its group. collCostTable
   * is really float[numAlgo][numProto], what NCCL expects in microseconds; the cheapest is chosen.
   * *nChannels is 0; what is left so, NCCL decides. regBuff: the buffers can be registered. */
  ncclResult_t (*getCollInfo)(void* context, ncclFunc_t collType, size_t nBytes, int numPipeOps,
                              float** collCostTable, int numAlgo, int numProto, int regBuff,
                              int* nChannels);
  /* The communicator goes; no call of it follows. */
  ncclResult_t (*finalize)(void* context);
  /* What NCCL has made chunks of nBytes by algo and proto: the plugin may change *chunkSize. May be NULL. */
  ncclResult_t (*getChunkSize)(void* context, ncclFunc_t collType, size_t nBytes, int algo, int proto,
                               int nChannels, size_t* chunkSize);
} ncclTuner_v6_t;

#endif
