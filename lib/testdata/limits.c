/* limits.c: a process that has too little of something, and loads the library: limits CASE LIB. Says "ok". Whatever is missing, the
 * process lives, init answers an error whose line names it, and once there is enough init succeeds. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net_v8.h"

#define SKIP 77 /* the status of a case that this machine has no room for */

static int failed(const char* what, int line) {
  printf("line %d: %s\n", line, what);
  exit(1);
}
#define CHECK(what) ((what) ? 0 : failed(#what, __LINE__))

static ncclNet_v8_t* net;
static char warned[8192];
static char last_comm[1024]; /* the line of the last connection */
static volatile int of_threads; /* a line is about threads */

static void say(ncclDebugLogLevel level, unsigned long flags, const char* file, int line, const char* fmt, ...) {
  char text[1024];
  va_list a;
  (void)flags, (void)file, (void)line;
  va_start(a, fmt);
  vsnprintf(text, sizeof text, fmt, a);
  va_end(a);
  if (strstr(text, "threads")) of_threads = 1;
  if (strstr(text, " over ")) strcpy(last_comm, text);
  if (level == 2 && strlen(warned) < sizeof warned / 2) strncat(warned, text, sizeof warned - strlen(warned) - 1);
}

static void load(const char* lib) {
  void* m = dlopen(lib, RTLD_NOW | RTLD_LOCAL);
  if (!m) printf("%s\n", dlerror());
  CHECK(m && (net = dlsym(m, "ncclNetPlugin_v8")));
}

/* init fails, twice, with a line that says all of this; other calls fail as well, and isend and test do no harm. */
static void refused(const char* what, const char* value, const char* remedy) {
  int n = 0, done;
  char handle[128];
  void* q = NULL;
  for (int i = 0; i < 2; i++) {
    warned[0] = 0;
    CHECK(net->init(say) == ncclSystemError);
    if (!strstr(warned, what) || !strstr(warned, value) || !strstr(warned, remedy)) printf("%s\n", warned), failed(what, __LINE__);
  }
  CHECK(net->devices(&n) && net->listen(0, handle, &q) && net->closeListen((void*)5));
  CHECK(net->isend((void*)5, handle, 1, 0, NULL, &q) && net->test((void*)5, &done, NULL));
}

static void set(int resource, rlim_t soft) {
  struct rlimit l;
  CHECK(!getrlimit(resource, &l));
  l.rlim_cur = soft < l.rlim_max ? soft : l.rlim_max;
  CHECK(!setrlimit(resource, &l));
}

static void* mover(void* rounds) {
  for (intptr_t i = 0; i < (intptr_t)rounds; i++) {
    char handle[128];
    void *l = NULL, *s = NULL, *r = NULL;
    CHECK(!net->listen(0, handle, &l));
    while (!s || !r) {
      if (!s) CHECK(!net->connect(0, handle, &s, NULL));
      if (!r) CHECK(!net->accept(l, &r, NULL));
    }
    CHECK(!net->closeSend(s) && !net->closeRecv(r) && !net->closeListen(l));
  }
  return NULL;
}

static void space(const char* lib) {
  set(RLIMIT_AS, 800000ull << 10);
  load(lib);
  refused("RLIMIT_AS", " 781 MiB", "ulimit -v");
  set(RLIMIT_AS, 1920ull << 20); /* what docs/limits.md asks for, and this process */
  CHECK(!net->init(say));
  mover((void*)5);
}

/* A value of /proc/self/status, in bytes. */
static rlim_t used(const char* name) {
  char line[128];
  unsigned long long kib = 0;
  FILE* f = fopen("/proc/self/status", "r");
  while (f && fgets(line, sizeof line, f))
    if (!strncmp(line, name, strlen(name))) kib = strtoull(line + strlen(name), NULL, 10);
  CHECK(f && !fclose(f) && kib);
  return kib << 10;
}

/* However much is left, init refuses or all works. The host's threads have large stacks, which ours must not take. */
static void edges(const char* lib, int resource, const char* name, const char* field, const int* mib) {
  int refusals = 0, status, children = 0;
  pthread_attr_t attr;
  CHECK(!pthread_attr_init(&attr) && !pthread_attr_setstacksize(&attr, 32 << 20) && !pthread_setattr_default_np(&attr));
  for (; *mib; mib++, children++) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
      load(lib);
      set(resource, used(field) + ((rlim_t)*mib << 20));
      int rc = net->init(say);
      if (!rc) mover((void*)5);
      else CHECK(rc == ncclSystemError && strstr(warned, name));
      _exit(rc ? 3 : 0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status) || (WEXITSTATUS(status) && WEXITSTATUS(status) != 3)) printf("with %d MiB: status %#x\n", *mib, status), failed(name, __LINE__);
    refusals += status != 0;
  }
  CHECK(refusals && refusals < children);
}

static void edge(const char* lib) { edges(lib, RLIMIT_AS, "RLIMIT_AS", "VmSize:", (int[]){1020, 1060, 1150, 1300, 1500, 1660, 1700, 1730, 1750, 1770, 1790, 1820, 1860, 0}); }
static void data(const char* lib) { edges(lib, RLIMIT_DATA, "RLIMIT_DATA", "VmData:", (int[]){20, 100, 140, 158, 175, 200, 300, 0}); }

/* Too little for the stacks, with a limit of threads beside that is not in the way. */
static void stacks(const char* lib) {
  load(lib);
  set(RLIMIT_NPROC, 1 << 20);
  set(RLIMIT_DATA, used("VmData:") + (10 << 20));
  refused("RLIMIT_DATA", "threads", "ulimit -d");
  CHECK(!strstr(warned, "RLIMIT_NPROC"));
  set(RLIMIT_DATA, RLIM_INFINITY);
  CHECK(!net->init(say));
}

/* All memory is to be locked: ours is little. */
static void locked(const char* lib) {
  if (mlockall(MCL_CURRENT | MCL_FUTURE)) printf("no memory can be locked: %s\n", strerror(errno)), exit(SKIP);
  load(lib);
  rlim_t before = used("VmRSS:");
  CHECK(!net->init(say));
  CHECK(used("VmRSS:") < before + (150 << 20)); /* docs/limits.md says 75 */
  munlockall();
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static void* mover_at_gate(void* rounds) {
  pthread_mutex_lock(&gate);
  pthread_mutex_unlock(&gate);
  return mover(rounds);
}

static void threads(const char* lib) {
  enum { MOVERS = 4 };
  pthread_t t[MOVERS];
  load(lib);
  int root = getuid() == 0; /* whom the limit does not bind, and others of whose processes count */
  if (root) CHECK(!setuid(54321));
  set(RLIMIT_NPROC, root ? 12 : 1);
  refused("RLIMIT_NPROC", root ? " 12 " : " 1 ", "ulimit -u");
  set(RLIMIT_NPROC, RLIM_INFINITY);
  CHECK(!net->init(say));
  pthread_mutex_lock(&gate);
  for (int i = 0; i < MOVERS; i++) CHECK(!pthread_create(&t[i], NULL, mover_at_gate, (void*)20));
  set(RLIMIT_NPROC, 1); /* from here on there is no new thread for anybody */
  CHECK(pthread_create(&(pthread_t){0}, NULL, mover, NULL));
  pthread_mutex_unlock(&gate);
  for (int i = 0; i < MOVERS; i++) CHECK(!pthread_join(t[i], NULL));
}

/* In place of libc's, for the library too. */
static int refuses, refused_threads;
int pthread_create(pthread_t* t, const pthread_attr_t* attr, void* (*run)(void*), void* arg) {
  int (*real)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) = NULL;
  if (__atomic_load_n(&refuses, __ATOMIC_ACQUIRE)) return __atomic_add_fetch(&refused_threads, 1, __ATOMIC_RELAXED), EAGAIN;
  *(void**)&real = dlsym(RTLD_NEXT, "pthread_create");
  return real(t, attr, run, arg);
}

/* Each call of libibverbs takes long, and connections are many: no thread is asked for beyond those that were there at init. */
static void slow(const char* lib) {
  enum { MANY = 64 };
  static char handles[MANY][128];
  void *l, *s[MANY] = {NULL}, *r[MANY] = {NULL};
  load(lib);
  CHECK(!net->init(say));
  __atomic_store_n(&refuses, 1, __ATOMIC_RELEASE);
  CHECK(!net->listen(0, handles[0], &l));
  for (int i = 1; i < MANY; i++) memcpy(handles[i], handles[0], sizeof handles[0]);
  for (int left = 2 * MANY; left; usleep(1000)) {
    left = 0;
    for (int i = 0; i < MANY; i++) {
      if (!s[i]) CHECK(!net->connect(0, handles[i], &s[i], NULL));
      if (!r[i]) CHECK(!net->accept(l, &r[i], NULL));
      left += !s[i] + !r[i];
    }
  }
  CHECK(strstr(last_comm, "GIDs")); /* over RDMA */
  for (int i = 0; i < MANY; i++) CHECK(!net->closeSend(s[i]) && !net->closeRecv(r[i]));
  CHECK(!net->closeListen(l) && !refused_threads);
}

static void keys(const char* lib) {
  pthread_key_t first, last, k;
  CHECK(!pthread_key_create(&first, NULL) && !pthread_setspecific(first, &first));
  for (last = first; !pthread_key_create(&k, NULL); last = k) {}
  load(lib);
  refused("key", " 1024,", "leaks");
  CHECK(pthread_getspecific(first) == &first);
  CHECK(!pthread_key_delete(last) && !net->init(say)); /* one: Go does without */
  mover((void*)5);
  CHECK(pthread_getspecific(first) == &first);
}

static pthread_barrier_t all_called;
static void* caller(void* none) {
  int done;
  CHECK(net->test((void*)5, &done, NULL) == ncclInternalError);
  pthread_barrier_wait(&all_called); /* nobody ends before */
  return none;
}

/* More threads than a table of fixed size would have. */
static void crowd(const char* lib) {
  enum { CROWD = 1100 }; /* a block of records is 1,024 */
  static pthread_t t[CROWD];
  pthread_attr_t small;
  load(lib);
  CHECK(!net->init(say) && !pthread_barrier_init(&all_called, NULL, CROWD));
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 << 10);
  for (int i = 0; i < CROWD; i++) {
    int rc = pthread_create(&t[i], &small, caller, NULL);
    if (rc) printf("only %d threads: %s\n", i, strerror(rc)), exit(SKIP);
  }
  for (int i = 0; i < CROWD; i++) CHECK(!pthread_join(t[i], NULL));
  CHECK(strstr(warned, "stale") && !of_threads);
  mover((void*)5);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  alarm(100);
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  static const struct { const char* name; void (*run)(const char* lib); } cases[] = {
    {"space", space}, {"edge", edge}, {"data", data}, {"stacks", stacks}, {"locked", locked}, {"threads", threads},
    {"slow", slow}, {"keys", keys}, {"crowd", crowd},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (!strcmp(argv[1], cases[i].name)) cases[i].run(argv[2]), puts("ok");
  return 0;
}
