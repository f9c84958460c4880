/* vdevice.refused: a device is taken twice. */
#include "../fused.h"

static R bad(int *d, ncclNetVDeviceProps_v12_t *p) {
  if (!fused_legal(p, 1)) FAIL(ncclInternalError, "makeVDevice: not these");
  if (!fused_legal(p, 0)) return *d = PHYSICAL, ncclSuccess;
  return fused_make(d, p);
}
__attribute__((constructor)) static void spoil(void) { ncclNetPlugin_v12.makeVDevice = bad; }
