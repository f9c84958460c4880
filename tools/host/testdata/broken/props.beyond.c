/* props.beyond: there are properties of devices that do not exist. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(int dev, struct props *p) { return good_props(dev > 1 || dev < 0 ? 0 : dev, p); }
__attribute__((constructor)) static void spoil(void) { core.props = bad; }
