// Function-pointer types PFN_<entry>_v<version>, derived from the declarations in cuda.h.
#ifndef SIMGPU_CUDATYPEDEFS_H
#define SIMGPU_CUDATYPEDEFS_H
#include "cuda.h"
/* up to 2.26 NCCL uses the plain names */
#define ENTRY_TYPES(f, v) typedef decltype(&f) PFN_##f##_v##v; typedef decltype(&f) PFN_##f;
ENTRY_TYPES(cuDeviceGet, 2000) ENTRY_TYPES(cuDeviceGetAttribute, 2000) ENTRY_TYPES(cuDeviceGetUuid, 9020)
ENTRY_TYPES(cuGetErrorString, 6000) ENTRY_TYPES(cuGetErrorName, 6000) ENTRY_TYPES(cuMemGetAddressRange, 3020)
ENTRY_TYPES(cuCtxCreate, 11040) ENTRY_TYPES(cuCtxDestroy, 4000) ENTRY_TYPES(cuCtxGetCurrent, 4000)
ENTRY_TYPES(cuCtxSetCurrent, 4000) ENTRY_TYPES(cuCtxGetDevice, 2000) ENTRY_TYPES(cuLaunchKernel, 4000)
ENTRY_TYPES(cuLaunchKernelEx, 11060) ENTRY_TYPES(cuPointerGetAttribute, 4000) ENTRY_TYPES(cuMemAddressReserve, 10020)
ENTRY_TYPES(cuMemAddressFree, 10020) ENTRY_TYPES(cuMemCreate, 10020) ENTRY_TYPES(cuMemGetAllocationGranularity, 10020)
ENTRY_TYPES(cuMemExportToShareableHandle, 10020) ENTRY_TYPES(cuMemImportFromShareableHandle,
	10020) ENTRY_TYPES(cuMemMap, 10020)
ENTRY_TYPES(cuMemRelease, 10020) ENTRY_TYPES(cuMemRetainAllocationHandle, 11000) ENTRY_TYPES(cuMemSetAccess, 10020)
ENTRY_TYPES(cuMemUnmap, 10020) ENTRY_TYPES(cuMemGetAllocationPropertiesFromHandle, 10020)
ENTRY_TYPES(cuMemGetHandleForAddressRange, 11070) ENTRY_TYPES(cuStreamBatchMemOp,
	11070) ENTRY_TYPES(cuStreamWaitValue32, 11070)
ENTRY_TYPES(cuStreamWaitValue64, 11070) ENTRY_TYPES(cuStreamWriteValue32, 11070) ENTRY_TYPES(cuStreamWriteValue64,
	11070)
ENTRY_TYPES(cuMulticastCreate, 12010) ENTRY_TYPES(cuMulticastAddDevice, 12010) ENTRY_TYPES(cuMulticastBindMem, 12010)
ENTRY_TYPES(cuMulticastBindAddr, 12010) ENTRY_TYPES(cuMulticastGetGranularity, 12010) ENTRY_TYPES(cuMulticastUnbind,
	12010)
ENTRY_TYPES(cuInit, 2000) ENTRY_TYPES(cuDriverGetVersion, 2020) ENTRY_TYPES(cuGetProcAddress, 11030)
typedef CUresult (*PFN_cuCtxCreate_v3020)(CUcontext*, unsigned int, CUdevice);
#undef ENTRY_TYPES
#endif
