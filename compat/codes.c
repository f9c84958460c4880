/* The codes of profiler v1 as the names that every later version has, and back. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "compat.h"

#define NAMES(table) (sizeof(table) / sizeof *(table))
#define NAME(table, code) ((code) < NAMES(table) && (table)[code] ? (table)[code] : "Unknown")

/* The code of a name. One that v1 does not have gets the first code that is none. */
static uint8_t code_of(const char* const* names, size_t count, const char* name) {
  for (size_t i = 0; name && i < count; i++) {
    if (names[i] && strcmp(names[i], name) == 0) return (uint8_t)i;
  }
  return (uint8_t)count;
}

static const char* const funcs[] = {
  [ncclFuncBroadcast] = "Broadcast",
  [ncclFuncReduce] = "Reduce",
  [ncclFuncAllGather] = "AllGather",
  [ncclFuncReduceScatter] = "ReduceScatter",
  [ncclFuncAllReduce] = "AllReduce",
  [ncclFuncSendRecv] = "SendRecv",
  [ncclFuncSend] = "Send",
  [ncclFuncRecv] = "Recv",
};

const char* weft_v1_func(uint8_t code) { return NAME(funcs, code); }
uint8_t weft_v1_func_code(const char* name) { return code_of(funcs, NAMES(funcs), name); }

static const char* const datatypes[] = {
  [ncclInt8] = "ncclInt8",
  [ncclUint8] = "ncclUint8",
  [ncclInt32] = "ncclInt32",
  [ncclUint32] = "ncclUint32",
  [ncclInt64] = "ncclInt64",
  [ncclUint64] = "ncclUint64",
  [ncclFloat16] = "ncclFloat16",
  [ncclFloat32] = "ncclFloat32",
  [ncclFloat64] = "ncclFloat64",
  [ncclBfloat16] = "ncclBfloat16",
  [ncclFloat8e4m3] = "ncclFloat8e4m3",
  [ncclFloat8e5m2] = "ncclFloat8e5m2",
};

const char* weft_v1_datatype(uint8_t code) { return NAME(datatypes, code); }
uint8_t weft_v1_datatype_code(const char* name) { return code_of(datatypes, NAMES(datatypes), name); }

static const char* const algos[] = {"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};

const char* weft_v1_algo(uint8_t code) { return NAME(algos, code); }
uint8_t weft_v1_algo_code(const char* name) { return code_of(algos, NAMES(algos), name); }

static const char* const protos[] = {"LL", "LL128", "SIMPLE"};

const char* weft_v1_proto(uint8_t code) { return NAME(protos, code); }
uint8_t weft_v1_proto_code(const char* name) { return code_of(protos, NAMES(protos), name); }
