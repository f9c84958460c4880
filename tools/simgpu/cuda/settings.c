/* What the environment says of the devices. SIMGPU_DEVICES: how many (1); SIMGPU_CC: compute capability times ten
 * (80); SIMGPU_GDR=1: they say that they take GPUDirect RDMA; SIMGPU_DMABUF=1: that, and their memory can be
 * exported as DMA-BUFs; SIMGPU_NVLINK=1: NVLinks join them, so that they reach one another's memory, in other
 * processes too; SIMGPU_TRACE=1: calls that are refused are printed. */
#include "simcuda.h"

#include <stdlib.h>

static int setting(const char* name, int otherwise) {
  const char* v = getenv(name);
  return v && *v ? atoi(v) : otherwise;
}

int device_count(void) { return setting("SIMGPU_DEVICES", 1); }
int device_capability(void) { return setting("SIMGPU_CC", 80); }
bool device_takes_dmabuf(void) { return setting("SIMGPU_DMABUF", 0); }
bool device_takes_gdr(void) { return setting("SIMGPU_GDR", 0) || device_takes_dmabuf(); }
bool device_has_nvlink(void) { return setting("SIMGPU_NVLINK", 0); }
bool traced(void) { return setting("SIMGPU_TRACE", 0); }
