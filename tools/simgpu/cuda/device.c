/* Devices and errors. */
#include "simcuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROCESSORS = 108 };

_Thread_local int device_current;
static _Thread_local cudaError_t last_error;
static _Thread_local CUcontext context;

cudaError_t failed(cudaError_t e) { return last_error = e; }

cudaError_t refused(const char* what) {
  if (traced()) fprintf(stderr, "simgpu: %s is refused\n", what);
  return failed(cudaErrorNotSupported);
}

const char* cudaGetErrorString(cudaError_t e) {
  switch (e) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidDevice: return "no such device";
    case cudaErrorNotReady: return "not ready";
    case cudaErrorNotSupported: return "not supported by simgpu";
    default: return "an error of simgpu";
  }
}
const char* cudaGetErrorName(cudaError_t e) { return cudaGetErrorString(e); }
cudaError_t cudaPeekAtLastError(void) { return last_error; }

cudaError_t cudaGetLastError(void) {
  cudaError_t e = last_error;
  last_error = cudaSuccess;
  return e;
}

cudaError_t cudaDriverGetVersion(int* v) { *v = SIMGPU_CUDA_VERSION; return cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* v) { *v = SIMGPU_CUDA_VERSION; return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* n) { *n = device_count(); return cudaSuccess; }
cudaError_t cudaGetDevice(int* d) { *d = device_current; return cudaSuccess; }

cudaError_t cudaSetDevice(int d) {
  if (d < 0 || d >= device_count()) return failed(cudaErrorInvalidDevice);
  device_current = d;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) { streams_sync(device_current); return cudaSuccess; }
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) { return cudaSuccess; }

cudaError_t cudaDeviceGetAttribute(int* v, cudaDeviceAttr a, int d) {
  switch ((int)a) {
    case cudaDevAttrComputeCapabilityMajor: *v = device_capability() / 10; break;
    case cudaDevAttrComputeCapabilityMinor: *v = device_capability() % 10; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *v = 166912; break;
    case cudaDevAttrMultiProcessorCount: *v = PROCESSORS; break;
    case cudaDevAttrClockRate: *v = 1410000; break;
    case cudaDevAttrGPUDirectRDMASupported: *v = device_takes_gdr(); break;
    default: *v = 0;
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* s, int n, int d) {
  snprintf(s, (size_t)n, "0000:%02x:00.0", FIRST_BUS + d);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int* d, const char* id) {
  unsigned domain, bus;
  if (sscanf(id, "%x:%x", &domain, &bus) != 2 || bus < FIRST_BUS || bus >= FIRST_BUS + (unsigned)device_count())
    return failed(cudaErrorInvalidDevice);
  *d = (int)bus - FIRST_BUS;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int a, int b) { *can = device_has_nvlink() && a != b; return cudaSuccess;
  }
cudaError_t cudaDeviceEnablePeerAccess(int d, unsigned flags) {
  return device_has_nvlink() ? cudaSuccess : refused("cudaDeviceEnablePeerAccess");
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int d) {
  memset(p, 0, sizeof *p);
  snprintf(p->name, sizeof p->name, "simgpu (host memory)");
  p->major = device_capability() / 10;
  p->minor = device_capability() % 10;
  p->multiProcessorCount = PROCESSORS;
  p->pciBusID = FIRST_BUS + d;
  p->totalGlobalMem = 16ull << 30;
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* a, const void* kernel) {
  *a = (cudaFuncAttributes){.maxThreadsPerBlock = 1024, .numRegs = 96};
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute a, int v) { return cudaSuccess; }

/* The driver's form of the same. */
CUresult cuInit(unsigned flags) { return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* v) { *v = SIMGPU_CUDA_VERSION; return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice* d, int i) { *d = i; return CUDA_SUCCESS; }

CUresult cuDeviceGetAttribute(int* v, CUdevice_attribute a, CUdevice d) {
  if (a == CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED) *v = device_takes_dmabuf();
  else cudaDeviceGetAttribute(v, (cudaDeviceAttr)a, d);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* u, CUdevice d) {
  const int pid = getpid();
  memset(u, 0, sizeof *u);
  memcpy(u->bytes, &pid, sizeof pid);
  u->bytes[15] = (char)(d + 1);
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult r, const char** s) { *s = r ? "an error of simgpu's driver" : "no error";
  return CUDA_SUCCESS; }
CUresult cuGetErrorName(CUresult r, const char** s) { return cuGetErrorString(r, s); }

/* A context is nothing here but a name. */
CUresult cuCtxCreate(CUcontext* c, CUexecAffinityParam* p, int n, unsigned flags, CUdevice d) {
  return (*c = malloc(1)) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuCtxDestroy(CUcontext c) { free(c); return CUDA_SUCCESS; }
CUresult cuCtxGetCurrent(CUcontext* c) { *c = context; return CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext c) { context = c; return CUDA_SUCCESS; }
CUresult cuCtxGetDevice(CUdevice* d) { *d = device_current; return CUDA_SUCCESS; }
