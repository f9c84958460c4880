/* What ends in mid-flight: by the program itself (abort), or by what others do meanwhile (traffic). */
#include "driver.h"

#include <stdio.h>
#include <unistd.h>

size_t mode_abort(ncclComm_t comm) {
  const int absent = (int)option_size("absent", "1");
  struct bench b;
  bench_open(&b, comm, option_size("size", "8M"));
  size_t wrong = bench_rounds(&b, "allreduce" AND_ALLTOALL, 1);
  const struct op o = {"allreduce", comm, b.stream};
  if (me != absent) op_run(&o, b.send, b.recv, b.bytes / type_size());
  sleep(1); /* so that the operation is under way where it is */
  NCCL(ncclCommAbort(comm));
  CUDA(cudaStreamSynchronize(b.stream));
  say("aborted");
  bench_close(&b);

  ncclComm_t fresh = join(1);
  bench_open(&b, fresh, 1 << 20);
  wrong += bench_rounds(&b, "allreduce" AND_ALLTOALL, 1);
  bench_close(&b);
  before_destroy();
  NCCL(ncclCommDestroy(fresh));
  return wrong;
}

static void wait_for_line(void) {
  char line[64];
  say("idle");
  if (!fgets(line, sizeof line, stdin)) fail("stdin has ended");
}

/* While there is a file of that name with the rank behind it, the rank comes late to each operation. */
static void come_late(const char* name) {
  char path[4096];
  snprintf(path, sizeof path, "%s.%d", name, me);
  if (*name && !access(path, F_OK)) usleep(20000);
}

/* Status 0 is for the rank to which NCCL tells of an error, and for the one that does all operations in peace; the
 * lines say which. */
size_t mode_traffic(ncclComm_t comm) {
  const char *names = option("ops", "allreduce"), *late = option("late", "");
  const size_t count = option_size("count", "1000000000"), idle = option_size("idle", "0"), begun = 8;
  const double limit = (double)option_size("limit", "120");
  struct bench b;
  bench_open(&b, comm, option_size("size", "4M"));
  if (bench_rounds(&b, names, 2)) return 1;

  const struct op o = {names, comm, b.stream};
  const size_t n = op_fit(&o, b.bytes / type_size());
  size_t got = 0;
  for (size_t i = 0; i < count; i++) {
    if (i == begun) say("under way");
    if (i + 1 == idle) wait_for_line();
    come_late(late);
    got = op_run(&o, b.send, b.recv, n);
    const double from = seconds();
    const enum outcome end = watch(&b, limit);
    if (end == DONE) continue;
    if (end == SILENT) fail("no word of NCCL for %g s", limit);
    say("told after %zu operations and %.1f s: %s", i, seconds() - from, last_error(comm));
    if (option_size("abort", "1")) {
      NCCL(ncclCommAbort(comm));
      say("aborted");
    }
    return 0;
  }
  const size_t wrong = op_check(&o, b.recv, n, got) != 0;
  say("all operations are done");
  bench_close(&b);
  before_destroy();
  NCCL(ncclCommDestroy(comm));
  return wrong;
}
