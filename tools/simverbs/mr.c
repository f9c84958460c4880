/* Protection domains and memory regions. A region's key is its slot in the arena and a generation; whoever copies
 * through it holds it meanwhile, and deregistering waits for them: afterwards nothing writes the memory. */
#include "sim.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

PUBLIC struct ibv_pd* ibv_alloc_pd(struct ibv_context* ctx) {
  struct vpd* pd = sv_new(sv_fail(FN_alloc_pd), sizeof *pd);
  if (!pd) return NULL;
  pd->pd.context = ctx;
  pd->id = pd->pd.handle = add(sv_arena->pds, 1);
  return (struct ibv_pd*)pd;
}

PUBLIC int ibv_dealloc_pd(struct ibv_pd* p) {
  struct vpd* pd = (struct vpd*)p;
  int e = sv_fail(FN_dealloc_pd);
  if (e || get(pd->used)) return e ? e : EBUSY;
  free(pd);
  return 0;
}

static struct shmr* claim(void) {
  struct shmr* s = NULL;
  sv_arena_lock();
  for (uint32_t n = 1; n < MAX_MR && !s; n++) {
    uint32_t i = (sv_arena->next_mr + n) % MAX_MR;
    if (!i || get(sv_arena->mrs[i].proc) || get(sv_arena->mrs[i].ref)) continue;
    s = &sv_arena->mrs[i];
    s->gen = (s->gen + 1) & 0xff;
    put(s->proc, sv_me);
    put(s->key, i << 8 | s->gen);
    sv_arena->next_mr = i;
  }
  sv_arena_unlock();
  return s;
}

static struct ibv_mr* publish(struct vmr* mr, struct ibv_pd* pd, void* addr, size_t len, uint64_t iova,
  unsigned access) {
  struct shmr* s = mr->s = claim();
  if (!s) { errno = ENOMEM; return NULL; }
  mr->mr = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = len, .handle = s->key >> 8,
    .lkey = s->key, .rkey = s->key};
  s->access = access;
  s->pd = ((struct vpd*)pd)->id;
  s->iova = iova;
  s->len = len;
  s->addr = (uint64_t)(uintptr_t)addr;
  s->from = (uint64_t)(uintptr_t)mr->map;
  s->to = s->from + mr->map_len;
  s->off = mr->map_off;
  s->fd = mr->fd;
  if (!mr->map) sv_share(mr, s);
  add(((struct vpd*)pd)->used, 1);
  add(s->ref, LIVE);
  return &mr->mr;
}

static int bad_access(unsigned access) {
  const unsigned known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
    IBV_ACCESS_REMOTE_ATOMIC |
                         IBV_ACCESS_MW_BIND | IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE;
  return (access & ~known) ||
    ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) && !(access & IBV_ACCESS_LOCAL_WRITE));
}

PUBLIC struct ibv_mr* ibv_reg_mr_iova2(struct ibv_pd* pd, void* addr, size_t len, uint64_t iova, unsigned access) {
  int e = sv_fail(FN_reg_mr_iova2);
  uintptr_t a = (uintptr_t)addr & ~(uintptr_t)4095;
  if (!e && (!len || (uintptr_t)addr + len < (uintptr_t)addr || bad_access(access))) e = EINVAL;
  if (!e && msync((void*)a, (uintptr_t)addr + len - a, MS_ASYNC)) e = EFAULT; /* not mapped */
  struct vmr* mr = sv_new(e, sizeof *mr);
  struct ibv_mr* out = mr ? publish(mr, pd, addr, len, iova, access) : NULL;
  if (!out) free(mr);
  return out;
}

PUBLIC struct ibv_mr* ibv_reg_mr(struct ibv_pd* pd, void* addr, size_t len, int access) {
  MAY_FAIL_WITH(reg_mr, NULL);
  return ibv_reg_mr_iova2(pd, addr, len, (uintptr_t)addr, (unsigned)access);
}

/* Any descriptor that can be mapped stands in for a DMA-BUF. */
PUBLIC struct ibv_mr* ibv_reg_dmabuf_mr(struct ibv_pd* pd, uint64_t offset, size_t len, uint64_t iova, int fd,
  int access) {
  int e = sv_fail(FN_reg_dmabuf_mr);
  if (!e && !((struct vdev*)pd->context->device)->conf->dmabuf) e = EOPNOTSUPP;
  if (!e && fcntl(fd, F_GETFD) < 0) e = EBADF;
  if (!e && (!len || bad_access((unsigned)access))) e = EINVAL;
  struct vmr* mr = sv_new(e, sizeof *mr);
  if (!mr) return NULL;
  uint64_t base = offset & ~(uint64_t)4095;
  mr->map_off = base;
  mr->map_len = (size_t)(offset - base + len + 4095) & ~(size_t)4095;
  mr->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  mr->map = mr->fd < 0 ? MAP_FAILED : mmap(NULL, mr->map_len, PROT_READ | PROT_WRITE, MAP_SHARED, mr->fd, (off_t)base);
  struct ibv_mr* out = NULL;
  if (mr->map == MAP_FAILED) e = errno;
  else if (!(out = publish(mr, pd, (uint8_t*)mr->map + (offset - base), len, iova, (unsigned)access))) {
    e = errno;
    munmap(mr->map, mr->map_len);
  }
  if (out) return out;
  if (mr->fd >= 0) close(mr->fd);
  free(mr);
  errno = e;
  return NULL;
}

PUBLIC int ibv_dereg_mr(struct ibv_mr* m) {
  MAY_FAIL(dereg_mr);
  struct vmr* mr = (struct vmr*)m;
  __atomic_fetch_and(&mr->s->ref, ~LIVE, __ATOMIC_ACQ_REL);
  sv_wait_ref(&mr->s->ref);
  put(mr->s->proc, 0);
  if (mr->map) {
    munmap(mr->map, mr->map_len);
    close(mr->fd);
  }
  else sv_unshare(mr);
  __atomic_fetch_sub(&((struct vpd*)m->pd)->used, 1, __ATOMIC_ACQ_REL);
  free(mr);
  return 0;
}

/* The region of a key, held, if it grants access to [at, at + len). */
struct shmr* sv_mr_hold(uint32_t key, uint32_t proc, uint32_t pd, uint32_t access, uint64_t at, uint32_t len) {
  uint32_t i = key >> 8;
  if (i >= MAX_MR) return NULL;
  struct shmr* s = &sv_arena->mrs[i];
  uint32_t ref = add(s->ref, proc == sv_me ? OWN : 1);
  if (likely((ref & LIVE) && s->key == key && get(s->proc) == proc && s->pd == pd && (s->access & access) == access &&
      at >= s->iova &&
             at - s->iova <= s->len && len <= s->len - (at - s->iova)))
    return s;
  sv_mr_drop(s, proc);
  return NULL;
}
