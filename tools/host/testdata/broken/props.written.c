/* props.written: forceFlush is left as it was. */
#define TABLES 1 << 12
#include "../good.c"

static ncclResult_t bad(int dev, ncclNetProperties_v12_t *p) {
  ncclNetProperties_v12_t all;
  ncclResult_t rc = props12(dev, &all);
  all.forceFlush = p->forceFlush;
  return *p = all, rc;
}
__attribute__((constructor)) static void spoil(void) { ncclNetPlugin_v12.getProperties = bad; }
