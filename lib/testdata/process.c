/* process.c: a process that loads the library in ways that the host does not: process CASE LIB COPY COPY. Says "ok". */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net_v12.h"
#include "net_v8.h"

static int failed(const char* what, int line) {
  printf("line %d: %s\n", line, what);
  exit(1);
}
#define CHECK(what) ((what) ? 0 : failed(#what, __LINE__))

static void* load(const char* path) {
  void* m = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!m) printf("%s\n", dlerror());
  CHECK(m);
  return m;
}

struct copy {
  void* module;
  int (*heard)(void);
  int (*init8)(void*);
  int (*init12)(void*, void**);
  int (*move8)(void*, void*);
  int (*move12)(void*, void*);
  int (*finalize)(void*, void*);
};

static struct copy copy(const char* path) {
  struct copy c = {.module = load(path)};
  *(void**)&c.heard = dlsym(c.module, "copy_heard");
  *(void**)&c.init8 = dlsym(c.module, "copy_init8");
  *(void**)&c.init12 = dlsym(c.module, "copy_init12");
  *(void**)&c.move8 = dlsym(c.module, "copy_move8");
  *(void**)&c.move12 = dlsym(c.module, "copy_move12");
  *(void**)&c.finalize = dlsym(c.module, "copy_finalize");
  return c;
}

/* Two copies of NCCL share the library, and one goes away. */
static void copies(const char* lib, const char* a_path, const char* b_path) {
  struct copy a = copy(a_path), b = copy(b_path);
  CHECK(a.module != b.module);
  void *in_a = load(lib), *in_b = load(lib), *ctx_a, *ctx_b;
  CHECK(in_a == in_b);
  CHECK(a.init8(in_a) == 0 && a.heard() > 0);
  CHECK(b.init8(in_b) == 0 && b.heard() == 0);
  CHECK(a.init12(in_a, &ctx_a) == 0 && b.init12(in_b, &ctx_b) == 0 && ctx_a != ctx_b);
  a.heard();
  CHECK(b.move12(in_b, ctx_b) == 0 && b.heard() >= 2 && a.heard() == 0);
  CHECK(a.move12(in_a, ctx_a) == 0 && a.heard() >= 2 && b.heard() == 0);
  CHECK(b.move8(in_b, NULL) == 0 && a.heard() >= 2 && b.heard() == 0); /* the first init's log function stays */
  CHECK(a.finalize(in_a, ctx_a) == 0);
  CHECK(dlclose(in_a) == 0 && dlclose(a.module) == 0);
  CHECK(dlopen(a_path, RTLD_NOW | RTLD_NOLOAD) == NULL);
  CHECK(b.move8(in_b, NULL) == 0); /* nobody calls into the module that is gone */
  CHECK(b.heard() >= 2);
  CHECK(b.init8(in_b) == 0 && b.move8(in_b, NULL) == 0 && b.heard() >= 2);
  CHECK(b.move12(in_b, ctx_b) == 0 && b.finalize(in_b, ctx_b) == 0);
  CHECK(dlclose(in_b) == 0);
  in_b = load(lib);
  CHECK(b.move8(in_b, NULL) == 0); /* as NCCL 2.22: no init after a reload */
  CHECK(b.init12(in_b, &ctx_b) == 0 && b.move12(in_b, ctx_b) == 0 && b.finalize(in_b, ctx_b) == 0);
  CHECK(b.finalize(in_b, ctx_b) != 0);
}

/* The library takes settings that the process made after its start, and gives back what Go changes while it starts. */
static void guest(const char* lib) {
  struct rlimit before = {0}, after;
  getrlimit(RLIMIT_NOFILE, &before);
  if (before.rlim_max > 700) before.rlim_cur = 600;
  CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  void* l = load(lib);
  ncclNet_v8_t* n = dlsym(l, "ncclNetPlugin_v8");
  int ndev = -1;
  ncclNetProperties_v8_t p;
  CHECK(n->devices(&ndev) != 0);
  CHECK(n->init(NULL) == 0 && n->devices(&ndev) == 0 && ndev == 1); /* no log function is tolerated */
  CHECK(n->getProperties(0, &p) == 0 && !strcmp(p.name, "lo") && p.pciPath == NULL);
  getrlimit(RLIMIT_NOFILE, &after);
  CHECK(after.rlim_cur == before.rlim_cur && after.rlim_max == before.rlim_max);
}

/* A child that did not exec answers ncclSystemError to every call, and the parent goes on. */
static void forked(const char* lib, const char* a_path) {
  struct copy a = copy(a_path);
  void *l = load(lib), *ctx;
  ncclNet_v12_t* n = dlsym(l, "ncclNetPlugin_v12");
  CHECK(a.init12(l, &ctx) == 0 && a.move12(l, ctx) == 0);
  pid_t pid = fork();
  if (pid == 0) {
    alarm(20);
    int ndev, said[2];
    char handle[128], text[1024];
    CHECK(pipe(said) == 0 && dup2(said[1], STDERR_FILENO) >= 0);
    void* q = NULL;
    ncclNetProperties_v12_t p;
    CHECK(n->devices(&ndev) == ncclSystemError && n->getProperties(0, &p) == ncclSystemError);
    CHECK(n->listen(ctx, 0, handle, &q) == ncclSystemError && n->closeSend((void*)5) == ncclSystemError);
    CHECK(n->isend((void*)5, handle, 1, 0, NULL, NULL, &q) == ncclSystemError && n->test((void*)5, &ndev, NULL) == ncclSystemError);
    CHECK(n->finalize(ctx) == ncclSystemError && a.init12(l, &ctx) == ncclSystemError);
    ssize_t n = read(said[0], text, sizeof text - 1); /* one line for all calls */
    CHECK(n > 0 && (text[n] = 0, strstr(text, "forked")) && strchr(text, '\n') == text + n - 1);
    _exit(0);
  }
  int status;
  CHECK(waitpid(pid, &status, 0) == pid && status == 0);
  CHECK(a.move12(l, ctx) == 0 && a.finalize(l, ctx) == 0);
}

static void* beside(void* n) {
  CHECK(((ncclNet_v8_t*)n)->init(NULL) == 0);
  return NULL;
}

/* Beside a thread that is in init a child works, if it was forked before, or is told; none waits for what it cannot get. */
static void forks(const char* lib, int before) {
  ncclNet_v8_t* n = dlsym(load(lib), "ncclNetPlugin_v8");
  enum { CHILDREN = 8 };
  pid_t children[CHILDREN];
  pthread_t t;
  int status, worked = 0;
  if (!before) CHECK(pthread_create(&t, NULL, beside, n) == 0);
  for (int i = 0; i < CHILDREN; i++) {
    CHECK((children[i] = fork()) >= 0);
    if (!children[i]) {
      alarm(60); /* one that hangs */
      CHECK(freopen("/dev/null", "w", stderr)); /* it may be told there */
      int rc = n->init(NULL), ndev = 0;
      _exit(rc == ncclSystemError ? n->devices(&ndev) == rc ? 2 : 3 : rc || n->devices(&ndev) || ndev != 1 ? 4 : 0);
    }
    if (!before) usleep(200);
  }
  for (int i = 0; i < CHILDREN; i++) {
    CHECK(waitpid(children[i], &status, 0) == children[i] && WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 2));
    worked += !status;
  }
  if (before) CHECK(worked == CHILDREN && n->init(NULL) == 0);
  else CHECK(pthread_join(t, NULL) == 0);
}

/* Children of a process that loaded the library and called nothing. */
static void early(const char* lib) {
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  forks(lib, 1);
}

/* Children of a process whose first init is under way. */
static void during(const char* lib) {
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  for (int i = 0; i < 25; i++) { /* each time with a Go that was not started */
    int status;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (!pid) alarm(90), forks(lib, 0), _exit(0);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
  }
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  alarm(100);
  if (!strcmp(argv[1], "copies")) copies(argv[2], argv[3], argv[4]);
  if (!strcmp(argv[1], "guest")) guest(argv[2]);
  if (!strcmp(argv[1], "forked")) forked(argv[2], argv[3]);
  if (!strcmp(argv[1], "early")) early(argv[2]);
  if (!strcmp(argv[1], "during")) during(argv[2]);
  puts("ok");
  return 0;
}
