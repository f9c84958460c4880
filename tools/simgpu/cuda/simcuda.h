/* What the parts of the simulated CUDA know of each other, and what it offers to the player of kernels. */
#ifndef SIMCUDA_H
#define SIMCUDA_H

#include <cuda_runtime.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)
/* Runs one launched kernel of so many blocks to its end, on the thread of its stream. args lasts as long as the
 * call. */
typedef void (*simcuda_kernel)(const void* kernel, const char* args, unsigned blocks);
/* sizes, which end with 0: those of the arguments of a kernel that is launched with a pointer to each. */
void simcuda_set_kernel(simcuda_kernel run, const size_t* sizes);
#pragma GCC visibility pop
#ifdef __cplusplus
}
#else

/* Devices: settings.c has what the environment says of them. Device i has the PCI address 0000:(41 + i):00.0, in
 * hexadecimal. */
enum { FIRST_BUS = 0x41 };
int device_count(void);
int device_capability(void); /* compute capability times ten */
bool device_takes_dmabuf(void);
bool device_takes_gdr(void);
bool device_has_nvlink(void);
extern _Thread_local int device_current;

cudaError_t failed(cudaError_t e);      /* remembers e for this thread's cudaGetLastError */
cudaError_t refused(const char* what);  /* cudaErrorNotSupported */
bool traced(void);                      /* refused calls are printed */

/* Memory: the allocation that an address lies in. */
struct span {
  uintptr_t at;
  size_t size;
  int device;
  bool on_device; /* else the host's, pinned */
  /* registered: the program's own; opened: another process's */
  enum { MEMORY_ALLOCATED, MEMORY_REGISTERED, MEMORY_OPENED } from;
};
bool memory_find(const void* p, struct span* out);
cudaError_t memory_add(struct span s);
cudaError_t memory_free(void* p);

/* What is shared of an allocation: share.c. use has the allocation that p lies in and what is shared of it, which it
 * may make; what it returns is the result, -1 if there is no allocation. Nothing of memory changes meanwhile. */
struct share;
int memory_share(const void* p, int (*use)(const struct span* s, struct share** share, const void* p, size_t n),
  size_t n);
void share_end(struct share* s);

/* Work of a stream: an item that its thread runs, in order, and then frees. It begins a struct of its own fields. */
struct work {
  struct work* next;
  void (*run)(struct work* w);
};
void* work_new(void (*run)(struct work* w), size_t size);
void stream_add(CUstream s, void* work);
void stream_sync(CUstream s);
void streams_sync(int device); /* all that the device has, but for the one that asks */

/* A launch, for the runtime's form and the driver's. */
cudaError_t launch(const void* kernel, unsigned blocks, const void* args, size_t bytes, CUstream s);
#endif
#endif
