/* connect.noconfig: the traffic class is read without a look whether there is a config. */
#define TABLES 1 << 10
#include "../good.c"

static volatile int class_of_last;
static ncclResult_t bad(int dev, ncclNetCommConfig_v10_t *g, void *h, void **c, ncclNetDeviceHandle_v10_t **d) { return class_of_last = g->trafficClass, connect10(dev, g, h, c, d); }
__attribute__((constructor)) static void spoil(void) { ncclNetPlugin_v10.connect = bad; }
