/* coll.vdevice: makeVDevice returns a device that was there before. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static R again(int *d, ncclNetVDeviceProps_v12_t *p) { return *d = p->devs[0], ncclSuccess; }

__attribute__((constructor)) static void spoil(void) { ncclCollNetPlugin_v12.makeVDevice = again; }
