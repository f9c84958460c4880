/* oversize.cut: memory is global, as NCCL reads it, and yet a send larger than its receive is refused. */
#define TABLES 1 << 8
#include "../good.c"

static R global8(int dev, ncclNetProperties_v8_t *p) { R rc = props8(dev, p); if (!rc) p->regIsGlobal = 1; return rc; }
__attribute__((constructor)) static void spoil(void) { ncclNetPlugin_v8.getProperties = global8; }
