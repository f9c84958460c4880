/* vdevice.made: the device made of two is the first of them. */
#include "../fused.h"

static R bad(int *d, ncclNetVDeviceProps_v12_t *p) {
  if (!fused_legal(p, 0)) FAIL(ncclInternalError, "makeVDevice: not these");
  return *d = p->devs[0], ncclSuccess;
}
__attribute__((constructor)) static void spoil(void) { ncclNetPlugin_v12.makeVDevice = bad; }
