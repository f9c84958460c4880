/* net.devices.same: the number of devices falls after the first question. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(int *n) { static int asked; return *n = 2 - (asked++ > 0), OK; }
__attribute__((constructor)) static void spoil(void) { core.devices = bad; }
