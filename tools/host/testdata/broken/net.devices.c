/* net.devices: init succeeds with no device. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(int *n) { return *n = 0, OK; }
__attribute__((constructor)) static void spoil(void) { core.devices = bad; }
