/* Device memory, which is the host's, and pinned host memory: who owns an address. */
#include "simcuda.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { GRAIN = 65536 };

struct block {
  struct span span;
  struct share* share; /* or NULL */
};

/* Sorted by address; the lock protects the table and what is shared of its blocks. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block* blocks;
static size_t count, room;

/* How many blocks begin at p or before it. */
static size_t place(uintptr_t p) {
  size_t lo = 0, hi = count;
  while (lo < hi) {
    const size_t mid = (lo + hi) / 2;
    if (blocks[mid].span.at <= p) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

static struct block* find(uintptr_t p) {
  const size_t i = place(p);
  return i && p - blocks[i - 1].span.at < blocks[i - 1].span.size ? &blocks[i - 1] : NULL;
}

cudaError_t memory_add(struct span s) {
  pthread_mutex_lock(&lock);
  if (count == room) {
    const size_t more = room ? 2 * room : 64;
    struct block* grown = realloc(blocks, more * sizeof *blocks);
    if (!grown) {
      pthread_mutex_unlock(&lock);
      return failed(cudaErrorMemoryAllocation);
    }
    blocks = grown;
    room = more;
  }
  const size_t i = place(s.at);
  memmove(&blocks[i + 1], &blocks[i], (count - i) * sizeof *blocks);
  blocks[i] = (struct block){s, NULL};
  count++;
  pthread_mutex_unlock(&lock);
  return cudaSuccess;
}

bool memory_find(const void* p, struct span* out) {
  pthread_mutex_lock(&lock);
  const struct block* b = find((uintptr_t)p);
  if (b) *out = b->span;
  pthread_mutex_unlock(&lock);
  return b;
}

int memory_share(const void* p, int (*use)(const struct span* s, struct share** share, const void* p, size_t n),
  size_t n) {
  pthread_mutex_lock(&lock);
  struct block* b = find((uintptr_t)p);
  const int r = b ? use(&b->span, &b->share, p, n) : -1;
  pthread_mutex_unlock(&lock);
  return r;
}

static cudaError_t allocate(void** out, size_t size, bool on_device) {
  *out = NULL;
  if (!size) return cudaSuccess;
  size = (size + GRAIN - 1) & ~(size_t)(GRAIN - 1);
  void* p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return failed(cudaErrorMemoryAllocation);
  const cudaError_t e = memory_add((struct span){(uintptr_t)p, size, device_current, on_device, MEMORY_ALLOCATED});
  if (e) munmap(p, size);
  else *out = p;
  return e;
}

cudaError_t memory_free(void* p) {
  if (!p) return cudaSuccess;
  pthread_mutex_lock(&lock);
  struct block* at = find((uintptr_t)p);
  if (!at || at->span.at != (uintptr_t)p) {
    pthread_mutex_unlock(&lock);
    return failed(cudaErrorInvalidValue);
  }
  const struct block b = *at;
  count--;
  memmove(at, at + 1, (size_t)(blocks + count - at) * sizeof *blocks);
  pthread_mutex_unlock(&lock);
  if (b.span.from != MEMORY_REGISTERED) munmap(p, b.span.size);
  share_end(b.share);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** p, size_t n) { return allocate(p, n, true); }
cudaError_t cudaMallocAsync(void** p, size_t n, cudaMemPool_t pool, cudaStream_t s) { return allocate(p, n, true); }
cudaError_t cudaMallocFromPoolAsync(void** p, size_t n, cudaMemPool_t pool,
  cudaStream_t s) { return allocate(p, n, true); }
cudaError_t cudaHostAlloc(void** p, size_t n, unsigned flags) { return allocate(p, n, false); }
cudaError_t cudaMallocHost(void** p, size_t n) { return allocate(p, n, false); }

/* Freeing waits for what the device still does, as CUDA's does. */
cudaError_t cudaFree(void* p) {
  struct span s;
  if (p && memory_find(p, &s)) streams_sync(s.device);
  return memory_free(p);
}
/* Host memory too: in an abort 2.12 frees fifos that a kernel still reads. */
cudaError_t cudaFreeHost(void* p) { return cudaFree(p); }

struct free_work {
  struct work w;
  void* p;
};
static void free_now(struct work* w) { memory_free(((struct free_work*)w)->p); }

cudaError_t cudaFreeAsync(void* p, cudaStream_t s) {
  struct free_work* f = work_new(free_now, sizeof *f);
  f->p = p;
  stream_add(s, f);
  return cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* m, const cudaMemPoolProps* props) {
  return (*m = malloc(1)) ? cudaSuccess : failed(cudaErrorMemoryAllocation);
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t m) { free(m); return cudaSuccess; }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t m, cudaMemPoolAttr a, void* v) { return cudaSuccess; }

cudaError_t cudaHostRegister(void* p, size_t n, unsigned flags) {
  return memory_add((struct span){(uintptr_t)p, n, device_current, false, MEMORY_REGISTERED});
}
cudaError_t cudaHostUnregister(void* p) { return memory_free(p); }
cudaError_t cudaHostGetDevicePointer(void** d, void* h, unsigned flags) { *d = h; return cudaSuccess; }

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* a, const void* p) {
  struct span s;
  if (!memory_find(p, &s)) *a = (cudaPointerAttributes){cudaMemoryTypeUnregistered, -1, NULL, (void*)p};
  else if (s.on_device) *a = (cudaPointerAttributes){cudaMemoryTypeDevice, s.device, (void*)p, NULL};
  else *a = (cudaPointerAttributes){cudaMemoryTypeHost, s.device, (void*)p, (void*)p};
  return cudaSuccess;
}

CUresult cuPointerGetAttribute(void* v, CUpointer_attribute a, CUdeviceptr p) {
  struct span s;
  if (!memory_find((void*)p, &s)) return CUDA_ERROR_INVALID_VALUE;
  int value = 0;
  if (a == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) value = s.on_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  if (a == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) value = s.device;
  memcpy(v, &value, sizeof value);
  return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange(CUdeviceptr* at, size_t* size, CUdeviceptr p) {
  struct span s;
  if (!memory_find((void*)p, &s)) return CUDA_ERROR_NOT_FOUND;
  if (at) *at = s.at;
  if (size) *size = s.size;
  return CUDA_SUCCESS;
}
