/* send.each: what irecv has to tell the sender waits until test is called. */
#define TABLES 1 << 12
#include "../good.c"


__attribute__((constructor)) static void spoil(void) { good_lazy = 1; }
