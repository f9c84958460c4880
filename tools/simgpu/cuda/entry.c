/* The driver's functions by name, as NCCL looks them up. Those of virtual memory are absent, which is how it learns
 * not to use them. */
#include "simcuda.h"

#include <string.h>

typedef void (*function)(void);
#define ENTRY(f) {#f, (function)f}

static const struct {
  const char* name;
  function fn;
} entries[] = {
    ENTRY(cuDeviceGet), ENTRY(cuDeviceGetAttribute), ENTRY(cuDeviceGetUuid), ENTRY(cuGetErrorString),
      ENTRY(cuGetErrorName),
    ENTRY(cuMemGetAddressRange), ENTRY(cuCtxDestroy), ENTRY(cuCtxGetCurrent), ENTRY(cuCtxSetCurrent),
      ENTRY(cuCtxGetDevice),
    ENTRY(cuLaunchKernel), ENTRY(cuLaunchKernelEx), ENTRY(cuPointerGetAttribute), ENTRY(cuMemGetHandleForAddressRange),
    ENTRY(cuStreamBatchMemOp), ENTRY(cuStreamWaitValue32), ENTRY(cuStreamWaitValue64), ENTRY(cuStreamWriteValue32),
    ENTRY(cuStreamWriteValue64), ENTRY(cuCtxCreate)};
enum { ENTRIES = sizeof entries / sizeof *entries };

static void* find(const char* name, int n) {
  void* found = NULL;
  for (int i = 0; i < n; i++)
    if (!strcmp(entries[i].name, name)) memcpy(&found, &entries[i].fn, sizeof found);
  return found;
}

cudaError_t cudaGetDriverEntryPoint(const char* name, void** fn, unsigned long long flags,
  cudaDriverEntryPointQueryResult* st) {
  *fn = find(name, ENTRIES);
  if (st) *st = *fn ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return *fn || st ? cudaSuccess : refused(name);
}

/* Up to 2.20. cuCtxCreate, the last of the table, is asked for in another form there, which nothing here has. */
CUresult cuGetProcAddress(const char* name, void** fn, int version, cuuint64_t flags) {
  *fn = find(name, ENTRIES - 1);
  return *fn ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
