/* log.calls: the logger gets no function name. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void **ctx, void *log) {
  if (log) ((ncclDebugLogger_t)log)(NCCL_LOG_INFO, NCCL_NET, NULL, 0, "%s", "NET/good : here");
  return good_init(ctx, log);
}
__attribute__((constructor)) static void spoil(void) { core.init = bad; }
