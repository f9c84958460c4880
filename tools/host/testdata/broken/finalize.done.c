/* finalize.done: finalize fails when everything has been closed. */
#define TABLES 1 << 12
#include "../good.c"

static int any(enum kind kind) {
  for (int i = 0; i < OBJECTS; i++)
    if (objects[i].kind == kind) return 1;
  return 0;
}
static int used;
static int closes(void *comm) { return used = 1, good_closesend(comm); }
static int bad(void *ctx) {
  if (used && !any(SEND)) FAIL(INTERNAL, "finalize: nothing there");
  return good_finalize(ctx);
}
__attribute__((constructor)) static void spoil(void) { core.finalize = bad, core.closesend = closes; }
