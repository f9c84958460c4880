/* libnvidia-ml.so.1: the devices of device.c, which NVLinks join if SIMGPU_NVLINK says so. Types as far as NCCL uses
 * them. */
#include "simcuda.h"

#include <stdio.h>
#include <string.h>

enum { SUCCESS = 0, INVALID = 2, UNSUPPORTED = 3, NOT_FOUND = 6 };
enum { GPU = 0x20b010de, BOARD = 0x134f10de, P2P_OK = 0, P2P_UNSUPPORTED = 5 };
enum { LINKS = 12, CAN_P2P = 0 }; /* what an A100 has, and NVML's number of the capability */

typedef int result;
typedef void* device;

/* The declaration comes first, as for every function that others call. */
#define API(type, name, ...)                                     \
  type name(__VA_ARGS__);                                        \
  __attribute__((visibility("default"))) type name(__VA_ARGS__)

/* As NCCL declares them, which is shorter than NVML's own. */
struct pci {
  char bus_id[16];
  unsigned domain, bus, device, id, board;
  unsigned reserved[4];
};

struct pci_ext {
  unsigned version, domain, bus, device, id, board, base_class, sub_class;
  char bus_id[16];
};

static int number(device d) { return (int)(uintptr_t)d - 1; }
static device handle(unsigned i) { return (device)(uintptr_t)(i + 1); }
static result set(unsigned* v, unsigned to) { *v = to; return SUCCESS; }

API(result, nvmlInit, void) { return SUCCESS; }
API(result, nvmlInit_v2, void) { return SUCCESS; }
API(result, nvmlShutdown, void) { return SUCCESS; }
API(const char*, nvmlErrorString, result r) { return r ? "an error of simgpu's NVML" : "no error"; }
API(result, nvmlDeviceGetCount, unsigned* n) { return set(n, (unsigned)device_count()); }
API(result, nvmlDeviceGetCount_v2, unsigned* n) { return nvmlDeviceGetCount(n); }
API(result, nvmlDeviceGetIndex, device d, unsigned* i) { return set(i, (unsigned)number(d)); }
API(result, nvmlDeviceGetMinorNumber, device d, unsigned* i) { return set(i, (unsigned)number(d)); }

API(result, nvmlDeviceGetHandleByIndex, unsigned i, device* d) {
  if (i >= (unsigned)device_count()) return INVALID;
  *d = handle(i);
  return SUCCESS;
}

API(result, nvmlDeviceGetHandleByPciBusId, const char* id, device* d) {
  unsigned domain, bus;
  if (sscanf(id, "%x:%x", &domain, &bus) != 2 || bus < FIRST_BUS || bus >= FIRST_BUS + (unsigned)device_count())
    return NOT_FOUND;
  *d = handle(bus - FIRST_BUS);
  return SUCCESS;
}

API(result, nvmlDeviceGetCudaComputeCapability, device d, int* major, int* minor) {
  *major = device_capability() / 10;
  *minor = device_capability() % 10;
  return SUCCESS;
}

API(result, nvmlDeviceGetPciInfo, device d, struct pci* p) {
  *p = (struct pci){.bus = FIRST_BUS + (unsigned)number(d), .id = GPU, .board = BOARD};
  snprintf(p->bus_id, sizeof p->bus_id, "0000:%02X:00.0", p->bus);
  return SUCCESS;
}
API(result, nvmlDeviceGetPciInfo_v3, device d, struct pci* p) { return nvmlDeviceGetPciInfo(d, p); }

/* A link leads to another device, each in turn. */
static bool has(device d, unsigned link) { return device_has_nvlink() && device_count() > 1 && link < LINKS &&
  number(d) < device_count(); }

API(result, nvmlDeviceGetNvLinkState, device d, unsigned link, unsigned* on) { return set(on, has(d, link)); }
API(result, nvmlDeviceGetNvLinkCapability, device d, unsigned link, int what,
  unsigned* v) { return set(v, has(d, link) && what == CAN_P2P); }

API(result, nvmlDeviceGetNvLinkRemotePciInfo, device d, unsigned link, struct pci* p) {
  if (!has(d, link)) return UNSUPPORTED;
  const int n = device_count();
  return nvmlDeviceGetPciInfo(handle((unsigned)((number(d) + 1 + (int)link % (n - 1)) % n)), p);
}

API(result, nvmlDeviceGetP2PStatus, device a, device b, int what, unsigned* v) {
  return set(v, device_has_nvlink() ? P2P_OK : P2P_UNSUPPORTED);
}

API(result, nvmlDeviceGetFieldValues, device d, int n, void* values) { return UNSUPPORTED; }
API(result, nvmlDeviceGetPcieLinkMaxSpeed, device d, unsigned* v) { return set(v, 16000); }
API(result, nvmlDeviceGetCurrPcieLinkGeneration, device d, unsigned* v) { return set(v, 4); }
API(result, nvmlDeviceGetCurrPcieLinkWidth, device d, unsigned* v) { return set(v, 16); }

/* Asked for by 2.28 and later. */
API(result, nvmlDeviceGetPciInfoExt, device d, struct pci_ext* p) {
  *p = (struct pci_ext){p->version, 0, FIRST_BUS + (unsigned)number(d), 0, GPU, BOARD, 3, 2, ""};
  snprintf(p->bus_id, sizeof p->bus_id, "0000:%02X:00.0", p->bus);
  return SUCCESS;
}
