/* props.device: a netDeviceType that NCCL does not know. */
#define TABLES 1 << 12
#include "../good.c"

static ncclResult_t bad(int dev, ncclNetProperties_v12_t *p) {
  ncclResult_t rc = props12(dev, p);
  return p->netDeviceType = 7, rc;
}
__attribute__((constructor)) static void spoil(void) { ncclNetPlugin_v12.getProperties = bad; }
