/* finalize.open: finalize fails while a listener that nobody accepted on is open. */
#define TABLES 1 << 12
#include "../good.c"

static int any(enum kind kind) {
  for (int i = 0; i < OBJECTS; i++)
    if (objects[i].kind == kind) return 1;
  return 0;
}
static int bad(void *ctx) {
  if (any(LISTEN) && !any(RECV)) FAIL(INTERNAL, "finalize: close the listener first");
  return good_finalize(ctx);
}
__attribute__((constructor)) static void spoil(void) { core.finalize = bad; }
