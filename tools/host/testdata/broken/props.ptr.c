/* props.ptr: DMA-BUF is promised, but there is no regMrDmaBuf. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(int dev, struct props *p) { int rc = good_props(dev, p); return p->ptr = 5, rc; }
__attribute__((constructor)) static void spoil(void) { core.props = bad; }
