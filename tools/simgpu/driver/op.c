/* Operations by name, and benches to run them on. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum kind { ALLREDUCE, BROADCAST, REDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL, SENDRECV, ALLTOALLV, KINDS };
static const char* const names[] =
  {"allreduce", "broadcast", "reduce", "allgather", "reducescatter", "alltoall", "sendrecv", "alltoallv"};

const char* op_beside(const char* first, unsigned i) {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 10, 0) && NCCL_VERSION_CODE < NCCL_VERSION(2, 11, 0)
  return first ? first : names[i]; /* it puts operations of any kind into one work, which is played as one kind */
#elif HAS_SENDS && NCCL_VERSION_CODE < NCCL_VERSION(2, 8, 0)
  return names[first ? i % ALLTOALL : i]; /* it keeps one send to a rank, the last */
#else
  return names[i];
#endif
}
unsigned op_names(void) { return HAS_SENDS ? KINDS : ALLTOALL; }

static enum kind kind(const struct op* o) {
  for (unsigned i = 0; i < op_names(); i++)
    if (!strcmp(names[i], o->name)) return (enum kind)i;
  fail("this release has no operation %s", o->name);
}

static bool in_parts(enum kind k) { return k == ALLGATHER || k == REDUCESCATTER || k == ALLTOALL || k == ALLTOALLV; }

/* How much of a part rank a sends to rank b, and b to a. */
static size_t share(enum kind k, size_t part, int a, int b) {
  return k == ALLTOALLV ? part * (size_t)(1 + (a + b) % 4) / 4 : part;
}

size_t op_fit(const struct op* o, size_t n) { return in_parts(kind(o)) ? n / (size_t)ranks * (size_t)ranks : n; }

#if HAS_SENDS
static void all_to_all(enum kind k, const struct op* o, char* send, char* recv, size_t part) {
  const size_t step = part * type_size();
  NCCL(ncclGroupStart());
  for (int r = 0; r < ranks; r++) {
    NCCL(ncclSend(send + (size_t)r * step, share(k, part, me, r), type(), r, o->comm, o->stream));
    NCCL(ncclRecv(recv + (size_t)r * step, share(k, part, me, r), type(), r, o->comm, o->stream));
  }
  NCCL(ncclGroupEnd());
}

/* To the next rank, from the one before. */
static void send_recv(const struct op* o, void* send, void* recv, size_t n) {
  NCCL(ncclGroupStart());
  NCCL(ncclSend(send, n, type(), (me + 1) % ranks, o->comm, o->stream));
  NCCL(ncclRecv(recv, n, type(), (me + ranks - 1) % ranks, o->comm, o->stream));
  NCCL(ncclGroupEnd());
}

#else
static void all_to_all(enum kind k, const struct op* o, char* send, char* recv, size_t part) {}
static void send_recv(const struct op* o, void* send, void* recv, size_t n) {}
#endif

size_t op_run(const struct op* o, void* send, void* recv, size_t n) {
  const size_t part = n / (size_t)ranks;
  const enum kind k = kind(o);
  switch (k) {
    case ALLREDUCE: NCCL(ncclAllReduce(send, recv, n, type(), ncclSum, o->comm, o->stream)); break;
    case BROADCAST: NCCL(ncclBroadcast(send, recv, n, type(), 0, o->comm, o->stream)); break;
    case REDUCE: NCCL(ncclReduce(send, recv, n, type(), ncclSum, 0, o->comm, o->stream)); break;
    case ALLGATHER: NCCL(ncclAllGather(send, recv, part, type(), o->comm, o->stream)); break;
    case REDUCESCATTER: NCCL(ncclReduceScatter(send, recv, part, type(), ncclSum, o->comm, o->stream)); break;
    case ALLTOALL: case ALLTOALLV: all_to_all(k, o, send, recv, part); break;
    default: send_recv(o, send, recv, n);
  }
  if (k == REDUCE && me) return 0;
  return k == REDUCESCATTER ? part : in_parts(k) ? part * (size_t)ranks : n;
}

static double expected(enum kind k, size_t n, size_t i) {
  const size_t part = n / (size_t)ranks, mine = (size_t)me * part;
  switch (k) {
    case ALLREDUCE: case REDUCE: return sum_of(i);
    case BROADCAST: return value_of(0, i);
    case ALLGATHER: return value_of((int)(i / part), i % part);
    case REDUCESCATTER: return sum_of(mine + i);
    case ALLTOALL: case ALLTOALLV: return value_of((int)(i / part), mine + i % part);
    default: return value_of((me + ranks - 1) % ranks, i);
  }
}

size_t op_check(const struct op* o, const void* recv, size_t n, size_t got) {
  const enum kind k = kind(o);
  const size_t part = n / (size_t)ranks;
  size_t wrong = 0;
  for (size_t i = 0; i < got; i++) {
    if (k == ALLTOALLV && i % part >= share(k, part, me, (int)(i / part))) continue; /* nothing was sent there */
    const double want = expected(k, n, i), have = element(recv, i);
    if (have >= want && have <= want) continue;
    if (wrong++ < 3) say("%s of %zu: element %zu is %g, not %g", o->name, n, i, have, want);
  }
  return wrong;
}

void bench_open(struct bench* b, ncclComm_t comm, size_t bytes) {
  *b = (struct bench){.comm = comm, .bytes = bytes};
  CUDA(cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking));
  CUDA(cudaMalloc(&b->send, bytes));
  CUDA(cudaMalloc(&b->recv, bytes));
  fill(b->send, bytes / type_size());
}

void bench_close(struct bench* b) {
  CUDA(cudaStreamDestroy(b->stream));
  CUDA(cudaFree(b->send));
  CUDA(cudaFree(b->recv));
}

enum outcome watch(const struct bench* b, double limit) {
  for (const double end = seconds() + limit; seconds() < end; usleep(200)) {
    if (cudaStreamQuery(b->stream) == cudaSuccess) return DONE;
    ncclResult_t async = ncclSuccess;
    if (ncclCommGetAsyncError(b->comm, &async) != ncclSuccess || (async != ncclSuccess && async != ncclInProgress))
      return TOLD;
  }
  return SILENT;
}

static size_t round_of(const struct bench* b, const char* name) {
  const struct op o = {name, b->comm, b->stream};
  const size_t n = op_fit(&o, b->bytes / type_size());
  memset(b->recv, 0xee, b->bytes);
  const size_t got = op_run(&o, b->send, b->recv, n);
  switch (watch(b, 120)) {
    case DONE: break;
    case TOLD: fail("%s of %zu: %s", name, n, last_error(b->comm));
    default: fail("%s of %zu is not done after 120 s", name, n);
  }
  return op_check(&o, b->recv, n, got) != 0;
}

size_t bench_rounds(const struct bench* b, const char* list, int rounds) {
  char* copy = strdup(list);
  size_t wrong = 0;
  char* rest = NULL;
  for (char* name = strtok_r(copy, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
    for (int i = 0; i < rounds; i++) wrong += round_of(b, name);
  free(copy);
  return wrong;
}
