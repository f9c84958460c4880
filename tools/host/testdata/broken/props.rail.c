/* props.rail: an unknown rail is told as -2. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(int dev, struct props *p) { int rc = good_props(dev, p); return p->rail = -2, rc; }
__attribute__((constructor)) static void spoil(void) { core.props = bad; }
