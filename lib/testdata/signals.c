/* signals.c: a process that handles signals, as profilers do, and loads the library: signals CASE LIB. Says "ok". Its handlers lack
 * SA_ONSTACK and need more stack than a goroutine has. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "net_v8.h"

static int failed(const char* what, int line) {
  printf("line %d: %s\n", line, what);
  exit(1);
}
#define CHECK(what) ((what) ? 0 : failed(#what, __LINE__))

static ncclNet_v8_t* net;
static char told[4096]; /* lines about signals */

static void say(ncclDebugLogLevel level, unsigned long flags, const char* file, int line, const char* fmt, ...) {
  char text[1024];
  va_list a;
  (void)flags, (void)file, (void)line;
  va_start(a, fmt);
  vsnprintf(text, sizeof text, fmt, a);
  va_end(a);
  if (strstr(text, "SA_ONSTACK") && level == 3) strncat(told, text, sizeof told - strlen(told) - 1);
}

static void load(const char* lib) {
  void* m = dlopen(lib, RTLD_NOW | RTLD_LOCAL);
  if (!m) printf("%s\n", dlerror());
  CHECK(m && (net = dlsym(m, "ncclNetPlugin_v8")));
}

#define SIZE 65536

/* Connects to itself and moves a message: every call that enters Go, on this thread. */
static void move(void) {
  char out[SIZE], in[SIZE], handle[128];
  void *l = NULL, *s = NULL, *r = NULL, *ms, *mr, *qs = NULL, *qr = NULL, *data = in;
  int tag = 1, done = 0, size = SIZE;
  memset(out, 'x', SIZE), memset(in, 0, SIZE);
  CHECK(!net->listen(0, handle, &l));
  while (!s || !r) {
    if (!s) CHECK(!net->connect(0, handle, &s, NULL));
    if (!r) CHECK(!net->accept(l, &r, NULL));
  }
  CHECK(!net->regMr(s, out, SIZE, NCCL_PTR_HOST, &ms) && !net->regMr(r, in, SIZE, NCCL_PTR_HOST, &mr));
  while (!qr) CHECK(!net->irecv(r, 1, &data, &size, &tag, &mr, &qr));
  while (!qs) CHECK(!net->isend(s, out, SIZE, tag, ms, &qs));
  while (!done) CHECK(!net->test(qs, &done, NULL));
  for (done = 0; !done;) CHECK(!net->test(qr, &done, NULL));
  CHECK(!net->deregMr(s, ms) && !net->deregMr(r, mr) && !net->closeSend(s) && !net->closeRecv(r) && !net->closeListen(l));
  CHECK(!memcmp(in, out, SIZE));
}

static __thread int of_host; /* set by threads of this process alone */
static volatile int handled, astray;

static void handler(int sig) {
  volatile char deep[48 << 10];
  (void)sig;
  int e = errno;
  for (size_t i = 0; i < sizeof deep; i += 64) deep[i] = 1;
  if (!of_host) astray = 1;
  handled++;
  errno = e;
}

static const int several[] = {SIGPROF, SIGUSR1, SIGCHLD, SIGURG, SIGTERM, 34, 40};
#define SEVERAL (sizeof several / sizeof *several)

static void install(void) {
  for (size_t i = 0; i < SEVERAL; i++) CHECK(!sigaction(several[i], &(struct sigaction){.sa_handler = handler, .sa_flags = SA_RESTART}, NULL));
}

static sigset_t set_of_several(void) {
  sigset_t s;
  sigemptyset(&s);
  for (size_t i = 0; i < SEVERAL; i++) sigaddset(&s, several[i]);
  return s;
}

static volatile int stop;
static void* shoot(void* none) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  for (unsigned i = 0; !stop; i++) {
    kill(getpid(), several[i % SEVERAL]);
    if (i % 16 == 0) usleep(100);
  }
  return none;
}

static void* mover(void* rounds) {
  sigset_t s = set_of_several();
  of_host = 1;
  pthread_sigmask(SIG_UNBLOCK, &s, NULL);
  for (intptr_t i = 0; i < (intptr_t)rounds; i++) move();
  return NULL;
}

/* Signals rain on a process whose threads call in. Every handler must run on a thread of the host, on its own stack. */
static void rain(const char* lib) {
  enum { MOVERS = 3 };
  pthread_t shooter, m[MOVERS];
  sigset_t s = set_of_several();
  load(lib);
  CHECK(!net->init(say));
  move();
  pthread_sigmask(SIG_BLOCK, &s, NULL);
  install(); /* after the library's start */
  CHECK(!pthread_create(&shooter, NULL, shoot, NULL));
  CHECK(!setitimer(ITIMER_PROF, &(struct itimerval){{0, 1000}, {0, 1000}}, NULL));
  for (int i = 0; i < MOVERS; i++) CHECK(!pthread_create(&m[i], NULL, mover, (void*)30));
  for (int i = 0; i < MOVERS; i++) CHECK(!pthread_join(m[i], NULL));
  stop = 1;
  CHECK(!pthread_join(shooter, NULL));
  CHECK(handled > 0 && !astray);
}

/* The host's threads block the signals: no thread of ours may take them in their stead. */
static void nobody(const char* lib) {
  pthread_t shooter;
  sigset_t s = set_of_several(), before;
  pthread_sigmask(SIG_BLOCK, &s, &before);
  load(lib);
  CHECK(!net->init(say));
  install();
  CHECK(!pthread_create(&shooter, NULL, shoot, NULL));
  CHECK(!setitimer(ITIMER_PROF, &(struct itimerval){{0, 1000}, {0, 1000}}, NULL));
  for (int i = 0; i < 30; i++) move();
  stop = 1;
  CHECK(!pthread_join(shooter, NULL));
  CHECK(!handled);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  CHECK(handled >= (int)SEVERAL - 1 && !astray);
}

static unsigned long flags_of(int sig) {
  struct sigaction a;
  CHECK(!sigaction(sig, NULL, &a));
  return (unsigned long)a.sa_flags;
}

/* Handlers get the flag with the next listen, the log says which, once, and nothing else of them changes. */
static void flags(const char* lib) {
  char handle[128];
  void* l;
  struct sigaction a;
  load(lib);
  CHECK(!sigaction(SIGUSR2, &(struct sigaction){.sa_handler = handler}, NULL));
  CHECK(!net->init(say) && flags_of(SIGUSR2) & SA_ONSTACK && strstr(told, "SIGUSR2"));
  CHECK(!sigaction(SIGPROF, &(struct sigaction){.sa_handler = handler, .sa_flags = SA_RESTART, .sa_mask = set_of_several()}, NULL));
  usleep(20000); /* within 10 ms of the last look nobody looks again */
  CHECK(!net->listen(0, handle, &l) && !net->closeListen(l));
  CHECK(!sigaction(SIGPROF, NULL, &a) && a.sa_handler == handler && sigismember(&a.sa_mask, SIGUSR1) == 1);
  CHECK((a.sa_flags & (SA_RESTART | SA_ONSTACK | SA_SIGINFO | SA_NODEFER)) == (SA_RESTART | SA_ONSTACK) && strstr(told, "SIGPROF"));
  told[0] = 0;
  CHECK(!sigaction(SIGPROF, &(struct sigaction){.sa_handler = handler}, NULL));
  usleep(20000);
  CHECK(!net->listen(0, handle, &l) && !net->closeListen(l) && flags_of(SIGPROF) & SA_ONSTACK && !told[0]);
}

/* Looks at the threads that are not the host's own: what they do not block. */
static void masks_of_go(void) {
  const uint64_t own = 1ull << (SIGILL - 1) | 1ull << (SIGTRAP - 1) | 1ull << (SIGBUS - 1) | 1ull << (SIGFPE - 1) | 1ull << (SIGSEGV - 1) |
                       1ull << (SIGSYS - 1) | 1ull << 31 | 1ull << 32 | 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1);
  char line[256], path[300];
  int threads = 0;
  DIR* d = opendir("/proc/self/task");
  for (struct dirent* e; (e = readdir(d));) {
    if (e->d_name[0] == '.' || atoi(e->d_name) == getpid()) continue;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
    FILE* f = fopen(path, "r");
    unsigned long long mask = 0;
    while (f && fgets(line, sizeof line, f))
      if (!strncmp(line, "SigBlk:", 7)) mask = strtoull(line + 7, NULL, 16);
    if (f) fclose(f), threads++;
    if (~mask & ~own) printf("thread %s does not block %#llx\n", e->d_name, (unsigned long long)(~mask & ~own)), exit(1);
  }
  closedir(d);
  CHECK(threads > 3);
}

/* Go's threads block what others send, and a host's thread is after each call what it was before. */
static void masks(const char* lib) {
  sigset_t s = set_of_several(), before, after;
  stack_t stack = {.ss_sp = malloc(SIGSTKSZ), .ss_size = SIGSTKSZ}, now;
  load(lib);
  for (int own = 0; own < 2; own++) { /* without a signal stack of its own, and with one */
    if (own) CHECK(!sigaltstack(&stack, NULL));
    pthread_sigmask(own ? SIG_UNBLOCK : SIG_BLOCK, &s, NULL);
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    CHECK(!net->init(say));
    for (int i = 0; i < 5; i++) move();
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    CHECK(!memcmp(&before, &after, 8));
    CHECK(!sigaltstack(NULL, &now) && (own ? now.ss_sp == stack.ss_sp && !now.ss_flags : now.ss_flags == SS_DISABLE));
    masks_of_go();
  }
}

/* A broken pipe ends a process that wants that, and only by the host's own writing. */
static void pipes(const char* lib) {
  load(lib);
  CHECK(!net->init(say));
  for (int i = 0; i < 5; i++) move();
  int p[2];
  CHECK(!pipe(p) && !close(p[0]) && !sigaction(SIGPIPE, &(struct sigaction){.sa_handler = handler}, NULL));
  CHECK(write(p[1], "x", 1) < 0 && errno == EPIPE && handled == 1 && !astray);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  alarm(100);
  of_host = 1;
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  unsetenv("GODEBUG"); /* with Go's preemption its threads take SIGURG */
  static const struct { const char* name; void (*run)(const char* lib); } cases[] = {
    {"rain", rain}, {"nobody", nobody}, {"flags", flags}, {"masks", masks}, {"pipes", pipes},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (!strcmp(argv[1], cases[i].name)) cases[i].run(argv[2]), puts("ok");
  return 0;
}
