/* close.null: a comm that was never made is unknown. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm) {
  if (!comm) FAIL(INTERNAL, "closeRecv: unknown comm");
  return good_closerecv(comm);
}
__attribute__((constructor)) static void spoil(void) { core.closerecv = bad; }
