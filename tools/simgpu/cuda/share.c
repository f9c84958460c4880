/* Device memory that is given away: as DMA-BUFs to other devices, and to other processes (IPC). What is given moves,
 * in place, into memfds: who maps the descriptor sees the memory. */
#define _GNU_SOURCE
#include "simcuda.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, PIECES = 32 };

/* A descriptor of a process, and which file it must be: numbers serve again. */
struct descriptor {
  int fd;
  dev_t filesystem;
  ino_t file;
};

/* Pages of an allocation that have a memfd of their own. */
struct piece {
  size_t off, n;
  struct descriptor in;
};

/* What is shared of an allocation. It lies in a memfd too, which other processes read. */
struct share {
  struct descriptor in;
  int device, opened; /* by so many others; atomic */
  size_t size;
  int count;
  struct piece pieces[PIECES]; /* a later one has the pages instead of an earlier */
};

static bool create(struct descriptor* d, size_t n) {
  struct stat st;
  const int fd = memfd_create("simgpu", MFD_CLOEXEC);
  if (fd >= 0 && !ftruncate(fd, (off_t)n) && !fstat(fd, &st)) {
    *d = (struct descriptor){fd, st.st_dev, st.st_ino};
    return true;
  }
  if (fd >= 0) close(fd);
  return false;
}

/* The same file, opened anew. */
static int open_of(int pid, const struct descriptor* d) {
  char path[64];
  struct stat st;
  snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, d->fd);
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd >= 0 && !fstat(fd, &st) && st.st_dev == d->filesystem && st.st_ino == d->file) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

static struct share* begin(const struct span* s) {
  struct descriptor in;
  if (!create(&in, sizeof(struct share))) return NULL;
  struct share* sh = mmap(NULL, sizeof *sh, PROT_READ | PROT_WRITE, MAP_SHARED, in.fd, 0);
  if (sh == MAP_FAILED) {
    close(in.fd);
    return NULL;
  }
  sh->in = in;
  sh->device = s->device;
  sh->size = s->size;
  return sh;
}

void share_end(struct share* sh) {
  if (!sh) return;
  for (int i = 0; i < sh->count; i++) close(sh->pieces[i].in.fd);
  close(sh->in.fd);
  munmap(sh, sizeof *sh);
}

static int move(const struct span* s, struct share* sh, size_t off, size_t n) {
  char* at = (char*)s->at + off;
  struct piece* p = &sh->pieces[sh->count];
  if (sh->count == PIECES || !create(&p->in, n)) return -1;
  p->off = off;
  p->n = n;
  if (pwrite(p->in.fd, at, n, 0) != (ssize_t)n ||
      mmap(at, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, p->in.fd, 0) == MAP_FAILED) {
    close(p->in.fd);
    return -1;
  }
  sh->count++;
  return p->in.fd;
}

/* The descriptor that begins at p and has n bytes or more. Pages of a larger piece get one of their own, if no other
 * process has that. */
static int descriptor(const struct span* s, struct share** share, const void* p, size_t n) {
  const size_t off = (size_t)((uintptr_t)p - s->at);
  if (!s->on_device || s->from != MEMORY_ALLOCATED || off + n > s->size || (off | n) % PAGE) return -1;
  if (!*share && !(*share = begin(s))) return -1;
  struct share* sh = *share;
  for (int i = sh->count - 1; i >= 0; i--) {
    const struct piece* q = &sh->pieces[i];
    if (q->off >= off + n || off >= q->off + q->n) continue;
    if (q->off == off && q->n >= n) return q->in.fd;
    if (q->off <= off && off + n <= q->off + q->n && !__atomic_load_n(&sh->opened, __ATOMIC_ACQUIRE)) break;
    refused("a descriptor of memory that is shared otherwise");
    return -1;
  }
  return move(s, sh, off, n);
}

CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr p, size_t n, CUmemRangeHandleType type,
  unsigned long long flags) {
  if (!device_takes_dmabuf() || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD) return CUDA_ERROR_NOT_SUPPORTED;
  const int fd = memory_share((void*)p, descriptor, n), own = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (own < 0) return CUDA_ERROR_INVALID_VALUE;
  memcpy(handle, &own, sizeof own);
  return CUDA_SUCCESS;
}

/* What a handle of IPC says. */
struct ipc {
  int pid;
  struct descriptor share;
};
_Static_assert(sizeof(struct ipc) <= sizeof(cudaIpcMemHandle_t), "a handle is too small");

/* The descriptor of the share of an allocation, all of which has moved. p is where it begins. */
static int share_all(const struct span* s, struct share** share, const void* p, size_t n) {
  if (s->at != (uintptr_t)p) return -1;
  if ((!*share || !(*share)->count || (*share)->pieces[0].n < s->size) && descriptor(s, share, p, s->size) < 0)
    return -1;
  return (*share)->in.fd;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* h, void* p) {
  struct stat st;
  if (!device_has_nvlink()) return refused("cudaIpcGetMemHandle");
  const int fd = memory_share(p, share_all, 0);
  if (fd < 0 || fstat(fd, &st)) return failed(cudaErrorInvalidValue);
  const struct ipc i = {getpid(), {fd, st.st_dev, st.st_ino}};
  memset(h, 0, sizeof *h);
  memcpy(h, &i, sizeof i);
  return cudaSuccess;
}

/* The pieces of a share of process pid, over one another as there; NULL if one is gone. */
static void* map_pieces(int pid, const struct share* sh) {
  char* at = mmap(NULL, sh->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return NULL;
  for (int i = 0; i < sh->count; i++) {
    const struct piece* p = &sh->pieces[i];
    const int fd = open_of(pid, &p->in);
    const bool mapped = fd >= 0 &&
      mmap(at + p->off, p->n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
    if (fd >= 0) close(fd);
    if (mapped) continue;
    munmap(at, sh->size);
    return NULL;
  }
  return at;
}

cudaError_t cudaIpcOpenMemHandle(void** p, cudaIpcMemHandle_t h, unsigned flags) {
  struct ipc i;
  if (!device_has_nvlink()) return refused("cudaIpcOpenMemHandle");
  memcpy(&i, &h, sizeof i);
  const int fd = open_of(i.pid, &i.share);
  if (fd < 0) return failed(cudaErrorInvalidValue);
  struct share* sh = mmap(NULL, sizeof *sh, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (sh == MAP_FAILED) return failed(cudaErrorMemoryAllocation);
  __atomic_fetch_add(&sh->opened, 1, __ATOMIC_ACQ_REL);
  void* at = map_pieces(i.pid, sh);
  const struct span s = {(uintptr_t)at, sh->size, sh->device, true, MEMORY_OPENED};
  munmap(sh, sizeof *sh);
  if (!at) return failed(cudaErrorInvalidValue);
  const cudaError_t e = memory_add(s);
  if (e) munmap(at, s.size);
  else *p = at;
  return e;
}

cudaError_t cudaIpcCloseMemHandle(void* p) {
  struct span s;
  if (!memory_find(p, &s) || s.from != MEMORY_OPENED) return failed(cudaErrorInvalidValue);
  streams_sync(device_current);
  return memory_free(p);
}
