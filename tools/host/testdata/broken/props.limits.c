/* props.limits: no limit is told as SIZE_MAX, which NCCL 2.30 refuses. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(int dev, struct props *p) { int rc = good_props(dev, p); return p->p2p = (size_t)-1, rc; }
__attribute__((constructor)) static void spoil(void) { core.props = bad; }
