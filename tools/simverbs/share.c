/* Moving bytes between processes. Memory that is registered is moved, in place and unnoticed, into a memfd, which
 * peers map: then a remote write is a memcpy by the initiator. Where that cannot be done (not plain private memory,
 * no userfaultfd) the initiator uses process_vm_writev. Deregistering the last region moves the memory back.
 *
 * In place and unnoticed: the pages are write-protected through userfaultfd (a thread that writes waits), copied,
 * and replaced by one mremap; closing the userfaultfd lets the thread go on, on the new pages. Between protecting
 * and replacing nothing may write memory of the process but its own stack. */
#include "sim.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct seg { uint64_t from, to; ino_t file; int fd; uint32_t refs; struct seg* next; };
static struct seg* segs;
static uint32_t segs_lock, maps_lock;
/* peers' regions as we map them */
static struct { uint32_t key; uint32_t pad; uint8_t* base; uint64_t len; } maps[MAX_MR];

/* Whether [from, to) lies in one private anonymous writable mapping that is not the stack we run on. */
static int plain(uint64_t from, uint64_t to) {
  char line[512], perm[8], name[32];
  unsigned long long a, b, inode;
  uint64_t self = (uint64_t)(uintptr_t)line;
  int yes = 0;
  FILE* f = fopen("/proc/self/maps", "re");
  while (f && !yes && fgets(line, sizeof line, f)) {
    int n = strtoull(strchr(line, '-') + 1, NULL, 16) < to ? 0
      : sscanf(line, "%llx-%llx %7s %*s %*s %llu %31s", &a, &b, perm, &inode, name);
    yes = n >= 4 && a <= from && to <= b && !inode && !strcmp(perm, "rw-p") && (n == 4 || !strcmp(name, "[heap]")) &&
      !(a <= self && self < b);
  }
  if (f) fclose(f);
  return yes;
}

/* PROCMAP_QUERY of Linux 6.11, which headers may lack. */
struct query { uint64_t size, flags, addr, from, to, prot, page, offset, inode; uint32_t dev[2], name_size, id_size;
  uint64_t name, id; };
#define QUERY _IOWR('f', 17, struct query)
enum { COVERING_OR_NEXT = 0x10 };

/* The mapping that covers at, or else the next: the kernel is asked, and older ones have their list read. 0: none. */
static int mapping(int fd, uint64_t at, unsigned long long* a, unsigned long long* b, unsigned long long* inode) {
  struct query q = {.size = sizeof q, .flags = COVERING_OR_NEXT, .addr = at};
  if (!ioctl(fd, QUERY, &q)) {
    *a = q.from;
    *b = q.to;
    *inode = q.inode;
    return 1;
  }
  if (errno == ENOENT) return 0;
  char line[512];
  int found = 0;
  FILE* f = fopen("/proc/self/maps", "re");
  while (f && !found && fgets(line, sizeof line, f))
    found = sscanf(line, "%llx-%llx %*s %*s %*s %llu", a, b, inode) == 3 && *b > at;
  if (f) fclose(f);
  return found;
}

/* The first piece of [*from, *to) that is a segment's file still: the host may have mapped other memory there, as it
 * may free what is registered, and deregister it then. 0: none. */
static int piece(const struct seg* g, uint64_t* from, uint64_t* to) {
  unsigned long long a = *from, b = a, inode = 0;
  int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), found = 0;
  while (fd >= 0 && !found && b < *to && mapping(fd, b, &a, &b, &inode)) found = inode == g->file && a < *to;
  if (fd >= 0) close(fd);
  if (!found) return 0;
  if (*from < a) *from = a;
  if (*to > b) *to = b;
  return 1;
}

/* Whether all that a segment has, or had, of [from, to) is its file, and that is something. */
static int covers(const struct seg* g, uint64_t from, uint64_t to) {
  if (from < g->from) from = g->from;
  if (to > g->to) to = g->to;
  uint64_t a = from, b = to;
  return from < to && piece(g, &a, &b) && a == from && b == to;
}

/* Replaces [from, to) by a mapping of fd (or private memory, fd < 0) with the same contents. */
static int replace(uint64_t from, uint64_t to, int fd) {
  size_t len = (size_t)(to - from);
  void* old = (void*)(uintptr_t)from;
  struct uffdio_api api =
    {.api = UFFD_API, .features = fd < 0 ? UFFD_FEATURE_WP_HUGETLBFS_SHMEM : UFFD_FEATURE_PAGEFAULT_FLAG_WP};
  struct uffdio_register reg = {.range = {from, len}, .mode = UFFDIO_REGISTER_MODE_WP};
  struct uffdio_writeprotect wp = {.range = {from, len}, .mode = UFFDIO_WRITEPROTECT_MODE_WP};
  int u = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
  if (u < 0) return errno;
  void* new = mmap(NULL, len, PROT_READ | PROT_WRITE, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
  int rc = EINVAL;
  if (new != MAP_FAILED) {
    madvise(new, len, MADV_POPULATE_WRITE);
    madvise(old, len, MADV_POPULATE_READ); /* protection does not reach pages that are not there */
    if (!ioctl(u, UFFDIO_API, &api) && !ioctl(u, UFFDIO_REGISTER, &reg) && !ioctl(u, UFFDIO_WRITEPROTECT, &wp)) {
      memcpy(new, old, len);
      if (mremap(new, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, old) == old) {
        rc = 0;
        new = MAP_FAILED;
      }
    }
  }
  close(u);
  if (new != MAP_FAILED) munmap(new, len);
  return rc;
}

void sv_share(struct vmr* mr, struct shmr* s) {
  uint64_t from = s->addr & ~(uint64_t)4095, to = (s->addr + s->len + 4095) & ~(uint64_t)4095;
  /* as much as that is rarely touched: making all of it present takes seconds */
  if (!sv_conf.share || s->len >> 30) return;
  sv_lock(&segs_lock);
  struct seg* g = segs;
  while (g && !covers(g, from, to)) g = g->next;
  if (!g && plain(from, to) && (g = calloc(1, sizeof *g))) {
    *g = (struct seg){.from = from, .to = to, .next = segs, .fd = memfd_create("simverbs", MFD_CLOEXEC)};
    struct stat st;
    if (g->fd >= 0 && !fstat(g->fd, &st)) g->file = st.st_ino;
    if (g->file && !ftruncate(g->fd, (off_t)(to - from)) && !replace(from, to, g->fd)) {
      segs = g;
    } else {
      if (g->fd >= 0) close(g->fd);
      free(g);
      g = NULL;
    }
  }
  if (g) { /* one that was there may cover a part only; the rest goes the slow way */
    g->refs++;
    mr->seg = g;
    s->from = from > g->from ? from : g->from;
    s->to = to < g->to ? to : g->to;
    s->off = s->from - g->from;
    s->fd = g->fd;
  }
  sv_unlock(&segs_lock);
}

void sv_unshare(struct vmr* mr) {
  if (!mr->seg) return;
  sv_lock(&segs_lock);
  struct seg* g = mr->seg;
  if (--g->refs == 0) {
    struct seg** p = &segs;
    while (*p != g) p = &(*p)->next;
    *p = g->next;
    /* if that fails the memory stays where it is: the mapping outlives the descriptor */
    for (uint64_t a = g->from, b = g->to; a < b && piece(g, &a, &b); a = b, b = g->to) replace(a, b, -1);
    close(g->fd);
    free(g);
  }
  sv_unlock(&segs_lock);
}

/* Who has a held region; 0: nobody any more, and his place among the processes may be another's. */
static pid_t owner(struct shmr* m) {
  uint32_t pid = get(sv_arena->procs[get(m->proc)].pid);
  return get(m->proc) ? (pid_t)pid : 0;
}

/* Where a peer's held region, from `from` on, is in our memory; NULL: nowhere. */
static uint8_t* map_peer(struct shmr* m) {
  uint32_t i = (uint32_t)(m - sv_arena->mrs);
  if (likely(get(maps[i].key) == m->key)) return maps[i].base;
  char path[64];
  sv_lock(&maps_lock);
  if (maps[i].key != m->key) {
    put(maps[i].key, 0);
    if (maps[i].base) munmap(maps[i].base, maps[i].len);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", owner(m), m->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC), of = fd < 0 ? (int)syscall(SYS_pidfd_open, owner(m), 0) : -1;
    if (of >= 0) { /* a DMA-BUF cannot be opened by its path */
      fd = (int)syscall(SYS_pidfd_getfd, of, m->fd, 0);
      close(of);
    }
    maps[i].len = m->to - m->from;
    void* p = fd < 0 ? MAP_FAILED
      : mmap(NULL, maps[i].len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, (off_t)m->off);
    maps[i].base = p == MAP_FAILED ? NULL : p;
    if (fd >= 0) close(fd);
    put(maps[i].key, m->key);
  }
  uint8_t* base = maps[i].base;
  sv_unlock(&maps_lock);
  return base;
}

/* Unmaps what peers have deregistered: nobody here can hold such a region. */
void sv_share_sweep(void) {
  sv_lock(&maps_lock);
  for (uint32_t i = 0; i < MAX_MR; i++) {
    struct shmr* s = &sv_arena->mrs[i];
    if (!maps[i].key || (get(s->ref) && get(s->key) == maps[i].key)) continue;
    put(maps[i].key, 0);
    if (maps[i].base) munmap(maps[i].base, maps[i].len);
    maps[i].base = NULL;
  }
  sv_unlock(&maps_lock);
}

static uint8_t* reach(struct shmr* m, uint64_t va, uint32_t len) {
  if (get(m->proc) == sv_me) return (uint8_t*)(uintptr_t)va;
  if (va < m->from || va + len > m->to) return NULL;
  uint8_t* base = map_peer(m);
  return base ? base + (va - m->from) : NULL;
}

/* Whole lines are stored one after another, the last 8 bytes of each last, as a card writes them. */
static size_t store_lines(uint8_t* to, const uint8_t* from, size_t len) {
  size_t done = 0;
  for (uint64_t v; ((uintptr_t)to & 63) == 0 && len - done >= 64; done += 64)
    for (size_t i = done; i < done + 64; i += 8) {
      memcpy(&v, from + i, 8);
      if (i == done + 56) __atomic_store_n((uint64_t*)(void*)(to + i), v, __ATOMIC_RELEASE);
      else __atomic_store_n((uint64_t*)(void*)(to + i), v, __ATOMIC_RELAXED);
    }
  return done;
}

/* The last 8 bytes of the last part are stored last, at once if aligned. */
static void store(uint8_t* to, const uint8_t* from, size_t len, int last) {
  const size_t lines = store_lines(to, from, len);
  to += lines;
  from += lines;
  len -= lines;
  size_t v, tail = !last ? 0 : len < 8 ? len : 8;
  if (len > tail) memmove(to, from, len - tail);
  to += len - tail;
  from += len - tail;
  if (tail == 8 && ((uintptr_t)to & 7) == 0) {
    memcpy(&v, from, 8);
    __atomic_store_n((uint64_t*)(void*)to, v, __ATOMIC_RELEASE);
  } else if (tail) {
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memmove(to, from, tail);
  }
}

static int copied(ssize_t done, uint32_t len) { return done == (ssize_t)len ? 0 : done < 0 ? errno : EFAULT; }

/* What the two system calls do, where there are none: under an emulator. */
static ssize_t through_proc(int write, pid_t pid, const struct iovec* iov, int n, uint64_t va) {
  char path[32];
  snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) { if (errno == ENOENT) errno = ESRCH; return -1; }
  ssize_t done = write ? pwritev(fd, iov, n, (off_t)va) : preadv(fd, iov, n, (off_t)va);
  int e = errno;
  close(fd);
  errno = e;
  return done;
}

static ssize_t copy_to(pid_t pid, const struct iovec* iov, int n, uint64_t va, uint32_t len) {
  struct iovec r = {(void*)(uintptr_t)va, len};
  ssize_t done = process_vm_writev(pid, iov, (unsigned long)n, &r, 1, 0);
  return done < 0 && errno == ENOSYS ? through_proc(1, pid, iov, n, va) : done;
}

static ssize_t copy_from(pid_t pid, const struct iovec* iov, int n, uint64_t va, uint32_t len) {
  struct iovec r = {(void*)(uintptr_t)va, len};
  ssize_t done = process_vm_readv(pid, iov, (unsigned long)n, &r, 1, 0);
  return done < 0 && errno == ENOSYS ? through_proc(0, pid, iov, n, va) : done;
}

int sv_put(struct shmr* m, uint64_t at, const struct iovec* iov, int n, uint32_t len) {
  uint64_t va = m->addr + (at - m->iova);
  uint8_t* to = reach(m, va, len);
  if (likely(to != NULL)) {
    for (int i = 0; i < n; to += iov[i++].iov_len) store(to, iov[i].iov_base, iov[i].iov_len, i == n - 1);
    return 0;
  }
  struct iovec v[MAX_SGE + 1];
  memcpy(v, iov, sizeof *iov * (size_t)n);
  if (n && v[n - 1].iov_len > 8) { /* the kernel copies entry after entry */
    v[n] = (struct iovec){(uint8_t*)v[n - 1].iov_base + v[n - 1].iov_len - 8, 8};
    v[n++ - 1].iov_len -= 8;
  }
  return copied(copy_to(owner(m), v, n, va, len), len);
}

int sv_fetch(struct shmr* m, uint64_t at, const struct iovec* iov, int n, uint32_t len) {
  uint64_t va = m->addr + (at - m->iova);
  const uint8_t* from = reach(m, va, len);
  if (likely(from != NULL)) {
    for (int i = 0; i < n; from += iov[i++].iov_len) memmove(iov[i].iov_base, from, iov[i].iov_len);
    return 0;
  }
  return copied(copy_from(owner(m), iov, n, va, len), len);
}
