/* grouped.c: weft's net, and a count of the receives of several buffers at once that it took. GROUPED_NET names weft's library, GROUPED_LOG
 * the file to append a line to for each of them. GROUPED_HOST=1: GPU memory is registered as the host's, which it is in simgpu; so a
 * network that takes no GPU memory has NCCL do with it what it does with GPUDirect. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "net_v10.h"
#include "net_v11.h"
#include "net_v12.h"
#include "net_v8.h"
#include "net_v9.h"

/* NCCL's tag is the rank that sends. */
static void note(int n, const int* tags) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  const char* path = getenv("GROUPED_LOG");
  if (n < 2 || !path) return;
  pthread_mutex_lock(&lock);
  FILE* f = fopen(path, "a");
  if (f) {
    fprintf(f, "pid=%d n=%d tags=", getpid(), n);
    for (int i = 0; i < n; i++) fprintf(f, "%s%d", i ? "," : "", tags[i]);
    fputc('\n', f);
    fclose(f);
  }
  pthread_mutex_unlock(&lock);
}

static int host_memory(void) { return getenv("GROUPED_HOST") != NULL; }

#define COMMA ,
/* One table: SIZE is what its sizes are, HANDLE the parameter for a profiler's handles, and HAND that handed on. */
#define TABLE(v, SIZE, HANDLE, HAND)                                                                                        \
  static ncclNet_v##v##_t weft_v##v;                                                                                        \
  __attribute__((visibility("default"))) ncclNet_v##v##_t ncclNetPlugin_v##v;                                               \
  static ncclResult_t irecv_v##v(void* c, int n, void** data, SIZE* sizes, int* tags, void** mh, HANDLE void** request) {   \
    const ncclResult_t r = weft_v##v.irecv(c, n, data, sizes, tags, mh, HAND request);                                      \
    if (r == ncclSuccess && *request) note(n, tags);                                                                        \
    return r;                                                                                                               \
  }                                                                                                                         \
  static ncclResult_t properties_v##v(int dev, ncclNetProperties_v##v##_t* p) {                                             \
    const ncclResult_t r = weft_v##v.getProperties(dev, p);                                                                 \
    if (host_memory()) p->ptrSupport |= NCCL_PTR_CUDA;                                                                      \
    return r;                                                                                                               \
  }                                                                                                                         \
  static ncclResult_t reg_v##v(void* c, void* data, size_t size, int type, void** mh) {                                     \
    return weft_v##v.regMr(c, data, size, host_memory() ? NCCL_PTR_HOST : type, mh);                                        \
  }                                                                                                                         \
  __attribute__((constructor)) static void take_v##v(void) {                                                                \
    const char* path = getenv("GROUPED_NET");                                                                               \
    void* lib = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;                                                          \
    const ncclNet_v##v##_t* net = lib ? dlsym(lib, "ncclNetPlugin_v" #v) : NULL;                                            \
    if (!net) return;                                                                                                       \
    weft_v##v = ncclNetPlugin_v##v = *net;                                                                                  \
    ncclNetPlugin_v##v.irecv = irecv_v##v;                                                                                  \
    ncclNetPlugin_v##v.getProperties = properties_v##v;                                                                     \
    ncclNetPlugin_v##v.regMr = reg_v##v;                                                                                    \
  }

TABLE(8, int, , )
TABLE(9, size_t, , )
TABLE(10, size_t, void** ph COMMA, ph COMMA)
TABLE(11, size_t, void** ph COMMA, ph COMMA)
TABLE(12, size_t, void** ph COMMA, ph COMMA)
