/* Operations of growing sizes, timed and checked; random groups of them; and a send and a receive from registered
 * buffers. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALL "allreduce,broadcast,reduce,allgather,reducescatter" AND_SENDS

static void* registered(ncclComm_t comm, void* p, size_t bytes) {
  void* handle = NULL;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
  NCCL(ncclCommRegister(comm, p, bytes, &handle));
#else
  fail("buffers are registered from 2.19 on");
#endif
  return handle;
}

static void deregistered(ncclComm_t comm, void* handle) {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
  if (handle) NCCL(ncclCommDeregister(comm, handle));
#endif
}

void leave(ncclComm_t comm) {
  before_destroy();
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 14, 0)
  NCCL(ncclCommFinalize(comm));
#endif
  NCCL(ncclCommDestroy(comm));
}

static size_t one_size(const struct bench* whole, const char* name, size_t bytes, int rounds) {
  struct bench b = *whole;
  const struct op o = {name, b.comm, b.stream};
  b.bytes = bytes;
  if (!op_fit(&o, bytes / type_size())) return 0;
  const double from = seconds();
  const size_t wrong = bench_rounds(&b, name, rounds);
  if (me == 0) say("%-13s %10zu bytes %12.1f us", name, bytes, (seconds() - from) / rounds * 1e6);
  return wrong;
}

size_t mode_sizes(ncclComm_t comm) {
  const size_t most = option_size("max", "4M"), step = option_size("step", "8");
  const int rounds = (int)option_size("rounds", "2");
  struct bench b;
  bench_open(&b, comm, most);
  void *send = NULL, *recv = NULL;
  if (option_size("reg", "0")) {
    send = registered(comm, b.send, most);
    recv = registered(comm, b.recv, most);
  }
  size_t wrong = 0;
  char *list = strdup(option("ops", ALL)), *rest = NULL;
  for (char* name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
    for (size_t n = option_size("min", "8"); n <= most; n *= step) wrong += one_size(&b, name, n, rounds);
  free(list);
  deregistered(comm, send);
  deregistered(comm, recv);
  bench_close(&b);
  leave(comm);
  return wrong;
}

static unsigned long long seed;
static unsigned below(unsigned n) {
  seed = seed * 6364136223846793005ull + 1442695040888963407ull;
  return (unsigned)(seed >> 33) % n;
}

enum { MOST = 3 }; /* operations of a group */

static size_t random_group(struct bench (*benches)[MOST], size_t most) {
  struct bench* b = benches[below(2)];
  struct op ops[MOST];
  size_t n[MOST], got[MOST], wrong = 0;
  const int count = 1 + (int)below(MOST);
  NCCL(ncclGroupStart());
  for (int i = 0; i < count; i++) {
    ops[i] = (struct op){op_beside(i ? ops[0].name : NULL, below(op_names())), b[i].comm, b[0].stream};
    const size_t bytes = (size_t)(1 + below(1000)) << below(13);
    n[i] = op_fit(&ops[i], (bytes < most ? bytes : most) / type_size());
    if (!n[i]) n[i] = (size_t)ranks;
    memset(b[i].recv, 0xee, n[i] * type_size());
    got[i] = op_run(&ops[i], b[i].send, b[i].recv, n[i]);
  }
  NCCL(ncclGroupEnd());
  if (watch(&b[0], 120) != DONE) fail("a group is not done: %s", last_error(b[0].comm));
  for (int i = 0; i < count; i++) wrong += op_check(&ops[i], b[i].recv, n[i], got[i]) != 0;
  return wrong;
}

size_t mode_random(ncclComm_t comm) {
  const size_t most = option_size("max", "1M"), groups = option_size("n", "200");
  const ncclComm_t comms[] = {comm, join(1)};
  struct bench b[2][MOST];
  size_t wrong = 0;
  seed = option_size("seed", "1");
  for (int c = 0; c < 2; c++)
    for (int i = 0; i < MOST; i++) bench_open(&b[c][i], comms[c], most);
  for (size_t i = 0; i < groups && !wrong; i++)
    if ((wrong = random_group(b, most))) say("group %zu of seed %s is wrong", i, option("seed", "1"));
  for (int c = 0; c < 2; c++) {
    for (int i = 0; i < MOST; i++) bench_close(&b[c][i]);
    leave(comms[c]);
  }
  return wrong;
}

size_t mode_registered(ncclComm_t comm) {
#if HAS_SENDS
  struct bench b;
  size_t wrong = 0;
  bench_open(&b, comm, option_size("bytes", "8M"));
  void* mine = me == 0 ? b.send : b.recv;
  void* handle = option_size(me == 0 ? "send" : "recv", "0") ? registered(comm, mine, b.bytes) : NULL;
  const size_t n = b.bytes / type_size();
  for (int round = 0; round < 3 && me < 2; round++) {
    memset(b.recv, 0xee, b.bytes);
    if (me == 0) NCCL(ncclSend(mine, n, type(), 1, comm, b.stream));
    else NCCL(ncclRecv(mine, n, type(), 0, comm, b.stream));
    if (watch(&b, 120) != DONE) fail("round %d is not done: %s", round, last_error(comm));
    for (size_t i = 0; me == 1 && i < n && !wrong; i++)
      if (element(b.recv, i) < value_of(0, i) || element(b.recv, i) > value_of(0, i)) {
        say("round %d: element %zu is wrong", round, i);
        wrong++;
      }
  }
  deregistered(comm, handle);
  bench_close(&b);
  leave(comm);
  return wrong;
#else
  fail("there are sends from 2.7 on");
#endif
}
