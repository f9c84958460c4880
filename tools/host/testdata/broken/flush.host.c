/* flush.host: there is no GPU memory, hence no flush. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm, int n, void **data, int *sizes, void **mhs, void **req) {
  (void)comm, (void)n, (void)data, (void)sizes, (void)mhs, (void)req;
  FAIL(INTERNAL, "iflush: nothing to flush");
}
__attribute__((constructor)) static void spoil(void) { core.iflush = bad; }
