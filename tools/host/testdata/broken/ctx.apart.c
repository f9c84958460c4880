/* ctx.apart: the end of one context ends all connections. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *ctx) {
  for (int i = 0; i < OBJECTS; i++)
    if (objects[i].kind == SEND || objects[i].kind == RECV) shutdown(((struct comm *)objects[i].p)->fd, SHUT_RDWR);
  return good_finalize(ctx);
}
__attribute__((constructor)) static void spoil(void) { core.finalize = bad; }
