/* The arena: one file that all processes of a configuration map, with every object that a peer may have to touch
 * while we are stopped. A process holds a record lock on its byte of the file, which the kernel drops when the
 * process ends; that is how the others learn that its objects are garbage. */
#include "sim.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAGIC 0x3253574d49535657u
#define PROC_BYTE(i) ((off_t)1 << 40 | (off_t)(i))

struct arena* sv_arena;
uint32_t sv_me;
static int arena_fd = -1;
static pid_t attached; /* the process that sv_me belongs to */

void sv_lock_slow(uint32_t* lock) {
  for (unsigned n = 0; __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE); n++)
    if (n > 64) sched_yield();
}

int sv_thread(void* (*run)(void*), void* arg) {
  sigset_t all, old;
  pthread_t thread;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  int rc = pthread_create(&thread, NULL, run, arg);
  if (!rc) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return rc;
}

int sv_pipe(int fds[2]) {
  return pipe2(fds, O_CLOEXEC) ? -1 : fcntl(fds[1], F_SETFL, O_NONBLOCK);
}

void* sv_new(int e, size_t size) {
  void* p = e ? NULL : calloc(1, size);
  if (e) errno = e;
  return p;
}

/* Events that were fetched must be acknowledged before their object can go. */
void sv_settle(uint32_t* acknowledged, uint32_t* got) {
  while (get(*acknowledged) != get(*got)) sched_yield();
}

static int file_lock(off_t at, short type, int wait) {
  struct flock f = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
  return fcntl(arena_fd, wait ? F_SETLKW : F_SETLK, &f);
}

static int others_live(uint32_t i, uint32_t n) { /* any of n */
  struct flock f = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = PROC_BYTE(i), .l_len = n};
  return fcntl(arena_fd, F_GETLK, &f) || f.l_type != F_UNLCK;
}
/* Record locks say nothing about ourselves, so our own slot is alive by definition. */
static int alive(uint32_t i) { return i == sv_me || others_live(i, 1); }

/* The lock word is the holder, so that a holder that died can be replaced. What it had half done is at most one leaked
 * object. */
void sv_arena_lock(void) {
  for (unsigned n = 0;; n++) {
    uint32_t free = 0;
    if (__atomic_compare_exchange_n(&sv_arena->lock, &free, sv_me, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
    if (n > 100) sched_yield();
    if (n % 5000 == 4999 && free != sv_me && !alive(free))
      __atomic_compare_exchange_n(&sv_arena->lock, &free, 0, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }
}
void sv_arena_unlock(void) { put(sv_arena->lock, 0); }

uint64_t sv_random(void) { /* splitmix64; one sequence for all processes of a world */
  uint64_t z = __atomic_add_fetch(&sv_arena->rng, 0x9e3779b97f4a7c15u, __ATOMIC_RELAXED);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static int size_class(uint64_t bytes) {
  int c = 8;
  while (((uint64_t)1 << c) < bytes) c++;
  return c;
}

/* Powers of two, freed blocks in a list per size; the caller holds the arena's lock. */
uint64_t sv_heap_alloc(uint64_t bytes) {
  int c = size_class(bytes);
  uint64_t at = sv_arena->free_list[c];
  if (at) {
    memcpy(&sv_arena->free_list[c], sv_heap(at), 8);
    memset(sv_heap(at), 0, 8);
    return at;
  }
  at = c < 14 ? sv_arena->heap_used : (sv_arena->heap_used + 4095) & ~(uint64_t)4095;
  if (at + ((uint64_t)1 << c) > sv_arena->size) return 0;
  sv_arena->heap_used = at + ((uint64_t)1 << c);
  return at;
}

void sv_heap_free(uint64_t at, uint64_t bytes) {
  if (!at) return;
  int c = size_class(bytes);
  /* No madvise: what passes for the kernel may answer it and do nothing. */
  if (c < 14 || fallocate(arena_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)1 << c))
    memset(sv_heap(at), 0, (size_t)1 << c);
  memcpy(sv_heap(at), &sv_arena->free_list[c], 8);
  sv_arena->free_list[c] = at;
}

void sv_kick(uint32_t p, uint32_t why) {
  struct proc* q = &sv_arena->procs[p];
  __atomic_fetch_or(&q->why, why, __ATOMIC_ACQ_REL);
  add(q->kick, 1);
  syscall(SYS_futex, &q->kick, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Waits until nobody copies through the object any more, but at most 1 s: until then nobody takes its place. */
void sv_wait_ref(uint32_t* ref) {
  uint64_t until = sv_now() + 1000000000u;
  for (unsigned n = 0; get(*ref) && (n % 1024 || sv_now() < until); n++) if (n > 64) sched_yield();
}

/* Others who copy meanwhile finish; queue pairs first: who then finds a region gone sees that its peer is. */
static void free_of(uint32_t p) {
  for (uint32_t i = 0; i < MAX_QP; i++) {
    struct shqp* q = &sv_arena->qps[i];
    if (get(q->proc) == p) {
      put(q->qpn, 0);
      put(q->proc, 0);
    }
    sv_rq_left(q);
  }
  for (uint32_t i = 0; i < MAX_MR; i++) {
    struct shmr* m = &sv_arena->mrs[i];
    if (get(m->proc) == p) {
      __atomic_fetch_and(&m->ref, OWN - 1, __ATOMIC_ACQ_REL);
      put(m->proc, 0);
    }
  }
  for (uint32_t i = 0; i < MAX_CQ; i++) if (get(sv_arena->cqs[i].proc) == p) {
    put(sv_arena->cqs[i].proc, 0);
    sv_cq_let(i);
  }
  put(sv_arena->procs[p].pid, 0);
}

void sv_reap(void) {
  for (uint32_t i = 1; i < MAX_PROC; i++) {
    if (!get(sv_arena->procs[i].pid) || alive(i)) continue;
    sv_arena_lock();
    if (get(sv_arena->procs[i].pid) && !alive(i)) free_of(i);
    sv_arena_unlock();
  }
}

static void format_arena(uint64_t size) {
  struct arena* a = sv_arena; /* next_qp: small numbers are special on real devices */
  a->size = size;
  a->heap_used = (sizeof *a + 4095) & ~(uint64_t)4095;
  a->rng = sv_conf.seed;
  a->next_qp = 16;
  a->pds = 1;
  memcpy(a->ports, sv_conf.port, sizeof sv_conf.port);
  sv_hot();
  put(a->magic, MAGIC);
}

static int join(const char* state) {
  char path[256];
  uint64_t size = sizeof(struct arena) + HEAP_BYTES;
  snprintf(path, sizeof path, "%s/arena", state);
  arena_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (arena_fd < 0 || file_lock(0, F_WRLCK, 1)) return errno;
  void* p = MAP_FAILED;
  if (!ftruncate(arena_fd, (off_t)size))
    p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, arena_fd, 0);
  if (p == MAP_FAILED) return errno;
  sv_arena = p;
  sv_me = 0;
  if (sv_arena->magic != MAGIC || !others_live(1, MAX_PROC)) {
    if (ftruncate(arena_fd, 0) || ftruncate(arena_fd, (off_t)size)) return errno;
    format_arena(size);
  }
  for (uint32_t i = 1; i < MAX_PROC && !sv_me; i++) if (!file_lock(PROC_BYTE(i), F_WRLCK, 0)) sv_me = i;
  if (!sv_me) return EUSERS;
  if (get(sv_arena->lock) == sv_me) sv_arena_unlock(); /* who had our slot died with it */
  sv_arena_lock();
  free_of(sv_me);
  put(sv_arena->procs[sv_me].pid, (uint32_t)getpid());
  sv_arena_unlock();
  file_lock(0, F_UNLCK, 0);
  return 0;
}

int sv_attach(void) {
  static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&once);
  int rc = 0;
  if (attached != getpid()) {
    sv_contexts = NULL; /* after a fork they are the parent's */
    sv_nactive = 0;
    if (arena_fd >= 0) close(arena_fd);
    if ((rc = sv_config_load()) == 0) {
      size_t n = strlen(sv_conf.dir);
      snprintf(sv_conf.dir + n, sizeof sv_conf.dir - n, "/simverbs-%u-%s", (unsigned)geteuid(), sv_conf.name);
      if (mkdir(sv_conf.dir, 0700) && errno != EEXIST) rc = errno;
      prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* lets peers use process_vm_writev under yama */
      if (!rc) rc = join(sv_conf.dir);
      if (rc) sv_log("set up %s: %s", sv_conf.dir, strerror(rc));
    }
    if (!rc) rc = sv_engine_start();
    if (!rc) {
      attached = getpid();
      for (int i = 0; i < sv_conf.ndev; i++) sv_device_setup(i);
      sv_control_start();
    }
  }
  pthread_mutex_unlock(&once);
  return rc;
}
