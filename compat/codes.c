/* The codes of profiler v1 as the names that every later version has. */
#include <stddef.h>
#include <stdint.h>

#include "compat.h"

#define NAME(table, code) ((code) < sizeof(table) / sizeof *(table) && (table)[code] ? (table)[code] : "Unknown")

const char* weft_v1_func(uint8_t code) {
  static const char* const names[] = {
      [ncclFuncBroadcast] = "Broadcast",
      [ncclFuncReduce] = "Reduce",
      [ncclFuncAllGather] = "AllGather",
      [ncclFuncReduceScatter] = "ReduceScatter",
      [ncclFuncAllReduce] = "AllReduce",
      [ncclFuncSendRecv] = "SendRecv",
      [ncclFuncSend] = "Send",
      [ncclFuncRecv] = "Recv",
  };
  return NAME(names, code);
}

const char* weft_v1_datatype(uint8_t code) {
  static const char* const names[] = {
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
  return NAME(names, code);
}

const char* weft_v1_algo(uint8_t code) {
  static const char* const names[] = {"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
  return NAME(names, code);
}

const char* weft_v1_proto(uint8_t code) {
  static const char* const names[] = {"LL", "LL128", "SIMPLE"};
  return NAME(names, code);
}
