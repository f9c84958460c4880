/* Copies, fills, host functions, and waits for and writes of memory, in the order of a stream. */
#include "simcuda.h"

#include <sched.h>
#include <string.h>

struct copy {
  struct work w;
  void* to;
  const void* from; /* NULL: bytes */
  size_t n;
  int value;
  char bytes[];
};

static void copy_now(struct work* w) {
  const struct copy* c = (struct copy*)w;
  memmove(c->to, c->from ? c->from : c->bytes, c->n);
}

static void fill_now(struct work* w) {
  const struct copy* c = (struct copy*)w;
  memset(c->to, c->value, c->n);
}

/* Memory that is not pinned is read before the call returns, and written too. */
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t n, cudaMemcpyKind kind, cudaStream_t s) {
  struct span known;
  const bool pinned = memory_find(from, &known);
  struct copy* c = work_new(copy_now, sizeof *c + (pinned ? 0 : n));
  c->to = to;
  c->from = pinned ? from : NULL;
  c->n = n;
  if (!pinned) memcpy(c->bytes, from, n);
  stream_add(s, c);
  if (!memory_find(to, &known)) stream_sync(s);
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t n, cudaMemcpyKind kind) {
  cudaMemcpyAsync(to, from, n, kind, 0);
  stream_sync(0);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t n, cudaStream_t s) {
  struct copy* c = work_new(fill_now, sizeof *c);
  c->to = to;
  c->value = value;
  c->n = n;
  stream_add(s, c);
  return cudaSuccess;
}

cudaError_t cudaMemset(void* to, int value, size_t n) {
  cudaMemsetAsync(to, value, n, 0);
  stream_sync(0);
  return cudaSuccess;
}

struct call {
  struct work w;
  cudaHostFn_t fn;
  void* arg;
};

static void call_now(struct work* w) {
  const struct call* c = (struct call*)w;
  c->fn(c->arg);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t fn, void* arg) {
  struct call* c = work_new(call_now, sizeof *c);
  c->fn = fn;
  c->arg = arg;
  stream_add(s, c);
  return cudaSuccess;
}

/* A word of memory that a stream waits for, or writes. */
struct word {
  struct work w;
  CUdeviceptr at;
  uint64_t value;
  bool wide, equal;
};

static bool there(const struct word* v) {
  const uint64_t have = v->wide
    ? __atomic_load_n((uint64_t*)v->at, __ATOMIC_ACQUIRE)
    : __atomic_load_n((uint32_t*)v->at, __ATOMIC_ACQUIRE);
  if (v->equal) return have == v->value;
  return v->wide ? (int64_t)(have - v->value) >= 0 : (int32_t)((uint32_t)have - (uint32_t)v->value) >= 0;
}

static void wait_now(struct work* w) {
  while (!there((struct word*)w)) sched_yield();
}

static void write_now(struct work* w) {
  const struct word* v = (struct word*)w;
  if (v->wide) __atomic_store_n((uint64_t*)v->at, v->value, __ATOMIC_RELEASE);
  else __atomic_store_n((uint32_t*)v->at, (uint32_t)v->value, __ATOMIC_RELEASE);
}

static CUresult add_word(CUstream s, void (*run)(struct work* w), CUdeviceptr at, uint64_t value, unsigned flags,
  bool wide) {
  struct word* v = work_new(run, sizeof *v);
  v->at = at;
  v->value = value;
  v->wide = wide;
  v->equal = flags == CU_STREAM_WAIT_VALUE_EQ;
  stream_add(s, v);
  return CUDA_SUCCESS;
}

CUresult cuStreamWaitValue32(CUstream s, CUdeviceptr at, cuuint32_t v,
  unsigned f) { return add_word(s, wait_now, at, v, f, false); }
CUresult cuStreamWaitValue64(CUstream s, CUdeviceptr at, cuuint64_t v,
  unsigned f) { return add_word(s, wait_now, at, v, f, true); }
CUresult cuStreamWriteValue32(CUstream s, CUdeviceptr at, cuuint32_t v,
  unsigned f) { return add_word(s, write_now, at, v, f, false); }
CUresult cuStreamWriteValue64(CUstream s, CUdeviceptr at, cuuint64_t v,
  unsigned f) { return add_word(s, write_now, at, v, f, true); }

CUresult cuStreamBatchMemOp(CUstream s, unsigned n, CUstreamBatchMemOpParams* p, unsigned flags) {
  for (unsigned i = 0; i < n; i++) switch (p[i].operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32: add_word(s, wait_now, p[i].waitValue.address, p[i].waitValue.value,
      p[i].waitValue.flags, false); break;
    case CU_STREAM_MEM_OP_WAIT_VALUE_64: add_word(s, wait_now, p[i].waitValue.address, p[i].waitValue.value64,
      p[i].waitValue.flags, true); break;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32: add_word(s, write_now, p[i].writeValue.address, p[i].writeValue.value, 0,
      false); break;
    case CU_STREAM_MEM_OP_WRITE_VALUE_64: add_word(s, write_now, p[i].writeValue.address, p[i].writeValue.value64, 0,
      true); break;
    default: return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}
