/* props.name: both devices have the same name. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(int dev, struct props *p) { int rc = good_props(dev, p); return p->name = "good", rc; }
__attribute__((constructor)) static void spoil(void) { core.props = bad; }
