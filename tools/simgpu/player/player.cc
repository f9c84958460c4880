// Plays NCCL's kernels on the CPU: reads the arguments that NCCL's host code built, and moves data through the buffers, counters and
// fifos of the connections as a kernel would, so that proxies and network plugin see the traffic of a GPU. Structures and the numbers of
// functions come from the NCCL tree that it is compiled for. What is not played says so and aborts.
#include "batches.h"
#include "fifo.h"
#include "lists.h"
#include "ll.h"
#include "simple.h"

namespace {
struct Install {
  Install() { simcuda_set_kernel(simgpu::runKernel, simgpu::kArgSizes); }
} install;
}  // namespace

#if SINCE(2, 14)
// What a communicator of one rank does: it copies. The only kernel there, scaling by a factor, is not played.
ncclResult_t ncclLaunchOneRank(void* dst, void const* src, size_t n, struct ncclDevRedOpFull op, ncclDataType_t type, cudaStream_t stream) {
  if (op.op == ncclDevPreMulSum) return ncclInvalidUsage;
  if (dst == src) return ncclSuccess;
  const size_t bytes = n * (size_t)simgpu::typeSize(type);
  return cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice, stream) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
#endif
