// Stand-in for the CUDA runtime header: only what NCCL's host sources and the test driver name.
#ifndef SIMGPU_CUDA_RUNTIME_H
#define SIMGPU_CUDA_RUNTIME_H
#include "cuda.h"
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <assert.h>
#include <stdlib.h>
#include <math.h>
#ifdef __cplusplus
#include <cstring>
#endif

#define CUDART_VERSION SIMGPU_CUDA_VERSION
#define CUDART_CB
#define __host__
#define __device__
#define __global__
#define __shared__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__

typedef struct { int x, y; } int2;
typedef struct __attribute__((aligned(16))) { int x, y, z, w; } int4;
typedef struct { unsigned x, y; } uint2;
typedef struct __attribute__((aligned(16))) { unsigned x, y, z, w; } uint4;
typedef struct __attribute__((aligned(16))) { unsigned long x, y; } ulong2;
typedef struct __attribute__((aligned(16))) { unsigned long long x, y; } ulonglong2;
typedef struct __attribute__((aligned(8))) { float x, y; } float2;
typedef struct __attribute__((aligned(16))) { float x, y, z, w; } float4;
typedef struct { unsigned x, y, z; } dim3;
typedef struct { unsigned x, y, z; } uint3;

typedef enum {
  cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2, cudaErrorStubLibrary = 34,
  cudaErrorInvalidDevice = 101, cudaErrorNotReady = 600, cudaErrorPeerAccessAlreadyEnabled = 704,
  cudaErrorMisalignedAddress = 716, cudaErrorNotPermitted = 800, cudaErrorNotSupported = 801, cudaErrorUnknown = 999
} cudaError_t;

typedef CUstream cudaStream_t;
typedef CUevent cudaEvent_t;
typedef CUfunction cudaFunction_t;
typedef CUuuid cudaUUID_t;
typedef struct SimGraph* cudaGraph_t;
typedef struct SimGraphNode* cudaGraphNode_t;
typedef struct SimGraphExec* cudaGraphExec_t;
typedef struct SimUserObject* cudaUserObject_t;
typedef struct SimMemPool* cudaMemPool_t;
typedef void (*cudaHostFn_t)(void*);
#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)

#define cudaStreamDefault 0x00  // NCCL compares streams with it
#define cudaStreamNonBlocking 0x01
enum { cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2 };
enum { cudaEventRecordDefault = 0, cudaEventRecordExternal = 1, cudaEventWaitDefault = 0, cudaEventWaitExternal = 1 };
enum { cudaHostAllocDefault = 0, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2, cudaHostAllocWriteCombined = 4 };
enum { cudaHostRegisterDefault = 0, cudaHostRegisterPortable = 1, cudaHostRegisterMapped = 2 };
enum { cudaIpcMemLazyEnablePeerAccess = 1 };
enum { cudaEnableDefault = 0 };
enum { cudaUserObjectNoDestructorSync = 1, cudaGraphUserObjectMove = 1 };
enum { cudaStreamAddCaptureDependencies = 0, cudaStreamSetCaptureDependencies = 1 };
typedef enum { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault } cudaMemcpyKind;
typedef enum { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive,
  cudaStreamCaptureStatusInvalidated } cudaStreamCaptureStatus;
typedef enum { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
  cudaStreamCaptureModeRelaxed } cudaStreamCaptureMode;
typedef enum { cudaDriverEntryPointSuccess, cudaDriverEntryPointSymbolNotFound,
  cudaDriverEntryPointVersionNotSufficent } cudaDriverEntryPointQueryResult;
typedef enum { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice,
  cudaMemoryTypeManaged } cudaMemoryType;
typedef enum {
  cudaDevAttrClockRate = 13, cudaDevAttrMultiProcessorCount = 16, cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76, cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
  cudaDevAttrCooperativeMultiDeviceLaunch = 96, cudaDevAttrGPUDirectRDMASupported = 116
} cudaDeviceAttr;
typedef enum { cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9 } cudaFuncAttribute;
typedef enum { cudaLimitStackSize = 0 } cudaLimit;
typedef enum { cudaLaunchMemSyncDomainDefault = 0, cudaLaunchMemSyncDomainRemote = 1 } cudaLaunchMemSyncDomain;
typedef enum { cudaMemAllocationTypePinned = 1 } cudaMemAllocationType;
typedef enum { cudaMemHandleTypeNone = 0 } cudaMemAllocationHandleType;
typedef enum { cudaMemLocationTypeInvalid = 0, cudaMemLocationTypeDevice = 1 } cudaMemLocationType;
typedef enum { cudaMemPoolAttrReleaseThreshold = 4 } cudaMemPoolAttr;

typedef enum { cudaLaunchAttributeClusterDimension = 4, cudaLaunchAttributeClusterSchedulingPolicyPreference = 5,
  cudaLaunchAttributeMemSyncDomain = 9 } cudaLaunchAttributeID;
typedef enum { cudaClusterSchedulingPolicySpread = 1 } cudaClusterSchedulingPolicy;
typedef struct {
  cudaLaunchAttributeID id;
  union { char pad[64]; struct { unsigned x, y, z; } clusterDim;
    cudaClusterSchedulingPolicy clusterSchedulingPolicyPreference; cudaLaunchMemSyncDomain memSyncDomain; } val;
} cudaLaunchAttribute;
typedef struct { dim3 gridDim, blockDim; size_t dynamicSmemBytes; cudaStream_t stream; cudaLaunchAttribute* attrs;
  unsigned numAttrs; } cudaLaunchConfig_t;
struct cudaLaunchParams { void* func; dim3 gridDim, blockDim; void** args; size_t sharedMem; cudaStream_t stream; };
enum { cudaCooperativeLaunchMultiDeviceNoPreSync = 1, cudaCooperativeLaunchMultiDeviceNoPostSync = 2 };
typedef struct { cudaMemLocationType type; int id; } cudaMemLocation;
typedef struct {
  cudaMemAllocationType allocType; cudaMemAllocationHandleType handleTypes; cudaMemLocation location;
  void* win32SecurityAttributes; size_t maxSize; unsigned char reserved[56];
} cudaMemPoolProps;
typedef struct { char reserved[CU_IPC_HANDLE_SIZE]; } cudaIpcMemHandle_t;
typedef struct { cudaMemoryType type; int device; void* devicePointer; void* hostPointer; } cudaPointerAttributes;
typedef struct { size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion,
                 cacheModeCA, maxDynamicSharedSizeBytes, preferredShmemCarveout; } cudaFuncAttributes;
typedef struct { char name[256]; cudaUUID_t uuid; size_t totalGlobalMem;
  int major, minor, multiProcessorCount, pciBusID, pciDeviceID,
                 pciDomainID, clockRate; } cudaDeviceProp;

#ifdef __cplusplus
#define CXX_DEFAULT(x) = x
extern "C" {
#else
#define CXX_DEFAULT(x)
#endif
#pragma GCC visibility push(default)
const char* cudaGetErrorString(cudaError_t);
const char* cudaGetErrorName(cudaError_t);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
cudaError_t cudaDriverGetVersion(int*);
cudaError_t cudaRuntimeGetVersion(int*);
cudaError_t cudaGetDeviceCount(int*);
cudaError_t cudaGetDevice(int*);
cudaError_t cudaSetDevice(int);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceSetLimit(cudaLimit, size_t);
cudaError_t cudaDeviceGetAttribute(int*, cudaDeviceAttr, int);
cudaError_t cudaDeviceGetPCIBusId(char*, int, int);
cudaError_t cudaDeviceGetByPCIBusId(int*, const char*);
cudaError_t cudaDeviceCanAccessPeer(int*, int, int);
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp*, int);
cudaError_t cudaMalloc(void**, size_t);
cudaError_t cudaFree(void*);
cudaError_t cudaMallocAsync(void**, size_t, cudaMemPool_t, cudaStream_t);
cudaError_t cudaMallocFromPoolAsync(void**, size_t, cudaMemPool_t, cudaStream_t);
cudaError_t cudaFreeAsync(void*, cudaStream_t);
cudaError_t cudaMemPoolCreate(cudaMemPool_t*, const cudaMemPoolProps*);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*);
cudaError_t cudaHostAlloc(void**, size_t, unsigned CXX_DEFAULT(0));
cudaError_t cudaMallocHost(void**, size_t);
cudaError_t cudaFreeHost(void*);
cudaError_t cudaHostRegister(void*, size_t, unsigned);
cudaError_t cudaHostUnregister(void*);
cudaError_t cudaHostGetDevicePointer(void**, void*, unsigned);
cudaError_t cudaMemcpy(void*, const void*, size_t, cudaMemcpyKind);
cudaError_t cudaMemcpyAsync(void*, const void*, size_t, cudaMemcpyKind, cudaStream_t CXX_DEFAULT(0));
cudaError_t cudaMemset(void*, int, size_t);
cudaError_t cudaMemsetAsync(void*, int, size_t, cudaStream_t CXX_DEFAULT(0));
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes*, const void*);
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t*, void*);
cudaError_t cudaIpcOpenMemHandle(void**, cudaIpcMemHandle_t, unsigned);
cudaError_t cudaIpcCloseMemHandle(void*);
cudaError_t cudaStreamCreate(cudaStream_t*);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t*, unsigned);
cudaError_t cudaStreamDestroy(cudaStream_t);
cudaError_t cudaStreamSynchronize(cudaStream_t);
cudaError_t cudaStreamQuery(cudaStream_t);
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned CXX_DEFAULT(0));
cudaError_t cudaStreamGetId(cudaStream_t, unsigned long long*);
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus*);
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*);
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*, cudaGraph_t*,
  const cudaGraphNode_t**, size_t*);
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t, cudaGraphNode_t*, size_t, unsigned);
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*);
cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t, cudaEvent_t);
typedef struct { cudaHostFn_t fn; void* userData; } cudaHostNodeParams;
typedef struct { void* func; dim3 gridDim, blockDim; unsigned sharedMemBytes; void** kernelParams; void** extra;
  } cudaKernelNodeParams;
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t);
cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t, cudaEvent_t);
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t,
  const cudaHostNodeParams*);
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t,
  const cudaKernelNodeParams*);
cudaError_t cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t*, const cudaGraphNode_t*, size_t);
cudaError_t cudaUserObjectCreate(cudaUserObject_t*, void*, cudaHostFn_t, unsigned, unsigned);
cudaError_t cudaGraphRetainUserObject(cudaGraph_t, cudaUserObject_t, unsigned, unsigned);
cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t, void*);
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void*, void**);
cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t);
cudaError_t cudaLaunchCooperativeKernelMultiDevice(struct cudaLaunchParams*, unsigned, unsigned);
cudaError_t cudaEventCreate(cudaEvent_t*);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t*, unsigned);
cudaError_t cudaEventDestroy(cudaEvent_t);
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t CXX_DEFAULT(0));
cudaError_t cudaEventQuery(cudaEvent_t);
cudaError_t cudaEventSynchronize(cudaEvent_t);
cudaError_t cudaEventElapsedTime(float*, cudaEvent_t, cudaEvent_t);
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, const void*);
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int);
cudaError_t cudaGetFuncBySymbol(cudaFunction_t*, const void*);
cudaError_t cudaGetDriverEntryPoint(const char*, void**, unsigned long long,
  cudaDriverEntryPointQueryResult* CXX_DEFAULT(NULL));
#pragma GCC visibility pop
#ifdef __cplusplus
}
template <typename T> inline cudaError_t cudaMalloc(T** p, size_t n) { return cudaMalloc((void**)p, n); }
inline cudaError_t cudaEventCreate(cudaEvent_t* e, unsigned f) { return cudaEventCreateWithFlags(e, f); }
template <typename T> inline cudaError_t cudaMallocHost(T** p, size_t n) { return cudaMallocHost((void**)p, n); }
template <typename T> inline cudaError_t cudaHostAlloc(T** p, size_t n,
  unsigned f = 0) { return cudaHostAlloc((void**)p, n, f); }
template <typename T> inline cudaError_t cudaMallocAsync(T** p, size_t n, cudaMemPool_t m,
  cudaStream_t s) { return cudaMallocAsync((void**)p, n, m, s); }
template <typename T> inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* a,
  T* f) { return cudaFuncGetAttributes(a, (const void*)f); }
#endif
#endif
