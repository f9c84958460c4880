/* How long operations take: batches of them are queued on the stream, and each batch is waited for once, as
 * nccl-tests does. */
#include "driver.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIMIT = 120, MOST = 100 }; /* seconds of a batch; batches, and sizes */

/* cudaStreamSynchronize has no deadline of its own. A loop of cudaStreamQuery would keep a core that the ranks need. */
static void late(int signal) {
  static const char why[] = "a batch of operations is not done after 120 s\n";
  _exit(write(STDOUT_FILENO, why, sizeof why - 1) < 0 ? 4 : 3);
}

static double batch(const struct bench* b, const struct op* o, size_t n, size_t iters) {
  const double from = seconds();
  alarm(LIMIT);
  for (size_t i = 0; i < iters; i++) op_run(o, b->send, b->recv, n);
  CUDA(cudaStreamSynchronize(b->stream));
  alarm(0);
  return (seconds() - from) / (double)iters * 1e6;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* Those that are timed are not checked; one more is, behind them. */
static size_t one_size(struct bench b, const char* name, size_t bytes) {
  const struct op o = {name, b.comm, b.stream};
  const size_t n = op_fit(&o, bytes / type_size()), batches = option_size("batches", "5");
  double took[MOST];
  if (!n || !batches || batches > MOST) fail("%s of %zu bytes cannot be timed in %zu batches", name, bytes, batches);
  const size_t most = option_size("most", "128M") / bytes + 1, asked = option_size("iters", "200");
  const size_t iters = asked < most ? asked : most;
  batch(&b, &o, n, iters); /* which connects */
  for (size_t i = 0; i < batches; i++) took[i] = batch(&b, &o, n, iters);
  qsort(took, batches, sizeof *took, ascending);
  if (me == 0)
    say("speed %s %zu bytes: median %.3f us, least %.3f us", name, bytes,
      (took[(batches - 1) / 2] + took[batches / 2]) / 2, took[0]);
  b.bytes = bytes;
  return bench_rounds(&b, name, 1);
}

size_t mode_speed(ncclComm_t comm) {
  char *list = strdup(option("sizes", "8,64K,1M")), *names = strdup(option("ops", "allreduce" AND_SENDS)), *rest = NULL;
  size_t sizes[MOST], n = 0, most = 0, wrong = 0;
  struct bench b;
  for (char* s = strtok_r(list, ",", &rest); s && n < MOST; s = strtok_r(NULL, ",", &rest), n++)
    if ((sizes[n] = size_of("sizes", s)) > most) most = sizes[n];
  signal(SIGALRM, late);
  bench_open(&b, comm, most);
  for (char* name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
    for (size_t i = 0; i < n; i++) wrong += one_size(b, name, sizes[i]);
  free(list);
  free(names);
  bench_close(&b);
  leave(comm);
  return wrong;
}
