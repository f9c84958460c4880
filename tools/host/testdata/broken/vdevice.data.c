/* vdevice.data: nobody can listen on a device made of two. */
#include "../fused.h"

__attribute__((constructor)) static void spoil(void) { core.listen = good_listen; }
