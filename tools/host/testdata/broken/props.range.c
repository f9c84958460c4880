/* props.range: the speed is unknown, told as 0. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(int dev, struct props *p) { int rc = good_props(dev, p); return p->speed = 0, rc; }
__attribute__((constructor)) static void spoil(void) { core.props = bad; }
