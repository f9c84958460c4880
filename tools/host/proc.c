/* The process itself: resources, environment, children, signals. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host.h"

int signal_pipe[2];
void signal_event(int sig);
static uint64_t counts[65];
enum { OWN_FDS = 1024 };
static uint64_t own_fds[OWN_FDS / 64]; /* bits: descriptors that were open before any plugin */

static int each_fd(void (*fn)(int fd, void* arg), void* arg) {
  DIR* d = opendir("/proc/self/fd");
  int n = 0;
  for (struct dirent* e; d && (e = readdir(d));) {
    const int fd = atoi(e->d_name);
    if (e->d_name[0] == '.' || fd == dirfd(d)) continue;
    n++;
    if (fn) fn(fd, arg);
  }
  if (d) closedir(d);
  return n;
}

/* A constructor, since a library that is linked into the host opens its own before main; and called by main too, since
 * glibc up to 2.33 calls no constructor of a program that was linked on a later one. Not by /proc/self/fd: a process
 * with named threads that has read it takes the kernel 1.4 ms to reap, instead of 10 us, and there are thousands. */
__attribute__((constructor)) void remember_fds(void) {
  static bool remembered;
  for (int fd = 0; !remembered && fd < OWN_FDS; fd++)
    if (fcntl(fd, F_GETFD) >= 0) own_fds[fd / 64] |= 1ULL << (fd % 64);
  remembered = true;
}

static void leaky(int fd, void* arg) {
  struct text* t = arg;
  if (fd < OWN_FDS && own_fds[fd / 64] >> (fd % 64) & 1) return;
  const int flags = fcntl(fd, F_GETFD);
  if (flags >= 0 && !(flags & FD_CLOEXEC)) text_add(t, "%s%d", t->len ? "," : "", fd);
}

static void c_cloexec(struct req* q) {
  struct text t = {0};
  each_fd(leaky, &t);
  out_str(q, "leaky", t.s ? t.s : "");
  free(t.s);
}

static void c_fddup(struct req* q) {
  const int fd = fcntl((int)num(q, "fd", -1), F_DUPFD_CLOEXEC, 0);
  if (fd < 0) fail(q, "usage", "dup: %s", strerror(errno));
  else out_num(q, "fd", fd);
}

static void c_fdclose(struct req* q) {
  if (close((int)num(q, "fd", -1)) != 0) fail(q, "usage", "close: %s", strerror(errno));
}

static int64_t status_field(const char* name) {
  char line[256];
  int64_t v = -1;
  FILE* f = fopen("/proc/self/status", "re");
  while (f && fgets(line, sizeof line, f))
    if (strncmp(line, name, strlen(name)) == 0) v = strtoll(line + strlen(name) + 1, NULL, 10);
  if (f) fclose(f);
  return v;
}

static int64_t tv_ns(struct timeval t) { return (t.tv_sec * 1000000LL + t.tv_usec) * 1000; }

static void c_stat(struct req* q) {
  struct rusage ru;
  getrusage(RUSAGE_SELF, &ru);
  out_num(q, "pid", getpid());
  out_num(q, "threads", status_field("Threads"));
  out_num(q, "fds", each_fd(NULL, NULL));
  out_num(q, "rss", status_field("VmRSS") * 1024);
  out_num(q, "utime", tv_ns(ru.ru_utime));
  out_num(q, "stime", tv_ns(ru.ru_stime));
}

static void c_getenv(struct req* q) { out_str(q, "value", getenv(str(q, "name", ""))); }

static void c_setenv(struct req* q) {
  if (num(q, "unset", 0))
    unsetenv(str(q, "name", ""));
  else
    setenv(str(q, "name", ""), str(q, "value", ""), 1);
}

static void c_rlimit(struct req* q) {
  const char* which = str(q, "which", "nofile");
  const int r = strcmp(which, "memlock") == 0 ? RLIMIT_MEMLOCK
                : strcmp(which, "as") == 0    ? RLIMIT_AS
                                              : RLIMIT_NOFILE;
  struct rlimit l;
  getrlimit(r, &l);
  l.rlim_cur = (rlim_t)num(q, "soft", (int64_t)l.rlim_cur);
  l.rlim_max = (rlim_t)num(q, "hard", (int64_t)l.rlim_max);
  if ((arg(q, "soft") || arg(q, "hard")) && setrlimit(r, &l) != 0)
    fail(q, "usage", "setrlimit %s: %s", which, strerror(errno));
  if (q->code) return;
  out_num(q, "soft", (int64_t)l.rlim_cur);
  out_num(q, "hard", (int64_t)l.rlim_max);
}

static void c_lock(struct req* q) {
  const int flags = (num(q, "current", 1) ? MCL_CURRENT : 0) | (num(q, "future", 0) ? MCL_FUTURE : 0) |
                    (num(q, "onfault", 0) ? MCL_ONFAULT : 0);
  if (mlockall(flags) != 0) fail(q, "usage", "mlockall: %s", strerror(errno));
}

/* From now on madvise(MADV_DONTNEED) returns 0 and does nothing, on every thread, as in some sandboxes. */
static void c_keep(struct req* q) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_DONTNEED, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {sizeof code / sizeof *code, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
    fail(q, "usage", "seccomp: %s", strerror(errno));
}

static void c_pin(struct req* q) {
  const int cpu = (int)num(q, "cpu", -1);
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int i = 0; i < CPU_SETSIZE; i++)
    if (cpu < 0 || i == cpu) CPU_SET((size_t)i, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    fail(q, "usage", "pin to CPU %d: %s", cpu, strerror(errno));
}

static void sleep_ms(int64_t ms) {
  struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
  while (nanosleep(&t, &t) != 0 && errno == EINTR) continue;
}

static void c_sleep(struct req* q) { sleep_ms(num(q, "ms", 0)); }

static int64_t burn_until;

static void* burn(void* unused) {
  (void)unused;
  while (now_ns() < __atomic_load_n(&burn_until, __ATOMIC_RELAXED)) continue;
  return NULL;
}

static void c_burn(struct req* q) {
  const int64_t n = num(q, "threads", 0);
  __atomic_store_n(&burn_until, n ? now_ns() + num(q, "ms", 10000) * 1000000 : 0, __ATOMIC_RELAXED);
  for (int64_t i = 0; i < n; i++) {
    pthread_t t;
    if (pthread_create(&t, NULL, burn, NULL) == 0) pthread_detach(t);
  }
}

/* What a forked child does: its lines, then leave or stay. */
static void child(struct req* q, int out) {
  const int64_t alarm_ms = num(q, "alarm", 2000);
  struct itimerval it = {.it_value = {alarm_ms / 1000, alarm_ms % 1000 * 1000}};
  signal(SIGALRM, SIG_DFL);
  setitimer(ITIMER_REAL, &it, NULL);
  child_fd = out;
  close(sock_fd); /* its end must mean the end of the parent */
  char *save = NULL, *all = strdup(str(q, "do", ""));
  for (char* l = strtok_r(all, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
    struct req c = {.id = 0};
    if (req_parse(&c, strdup(l), false)) req_run(&c);
  }
  if (!num(q, "hold", 0)) _exit(0);
  it.it_value = (struct timeval){0, 0};
  setitimer(ITIMER_REAL, &it, NULL);
  close(out);
  for (;;) pause();
}

static void out_status(struct req* q, int status) {
  out_num(q, "exit", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  out_num(q, "signal", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

static void c_fork(struct req* q) {
  int p[2];
  if (pipe2(p, O_CLOEXEC) != 0) {
    fail(q, "nomem", "pipe: %s", strerror(errno));
    return;
  }
  const pid_t pid = fork();
  if (pid == 0) {
    close(p[0]);
    child(q, p[1]);
  }
  close(p[1]);
  if (pid < 0) {
    close(p[0]);
    fail(q, "nomem", "fork: %s", strerror(errno));
    return;
  }
  struct text t = {0};
  char b[4097];
  for (ssize_t n; (n = read(p[0], b, sizeof b - 1)) > 0 || (n < 0 && errno == EINTR);)
    if (n > 0) text_add(&t, "%.*s", (int)n, b);
  close(p[0]);
  out_num(q, "child", pid);
  int status = 0;
  if (!num(q, "hold", 0)) {
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    out_status(q, status);
  }
  out_str(q, "out", t.s ? t.s : "");
  free(t.s);
}

static void c_reap(struct req* q) {
  const pid_t pid = (pid_t)num(q, "child", -1);
  int status = 0;
  if (pid <= 0) {
    fail(q, "usage", "child= is missing");
    return;
  }
  if (num(q, "kill", 1)) kill(pid, SIGKILL);
  if (waitpid(pid, &status, 0) < 0)
    fail(q, "usage", "waitpid %d: %s", (int)pid, strerror(errno));
  else
    out_status(q, status);
}

void signal_event(int sig) {
  struct text t = {0};
  text_add(&t, "- signal sig=%d count=%llu\n", sig, (unsigned long long)counts[sig]);
  line_write(t.s, t.len);
  free(t.s);
}

static void on_signal(int sig) {
  const int keep = errno;
  const unsigned char c = (unsigned char)sig;
  __atomic_fetch_add(&counts[sig], 1, __ATOMIC_RELAXED);
  if (sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL) {
    char line[64] = "- signal sig=   count=1\n";
    line[13] = (char)('0' + sig / 10);
    line[14] = (char)('0' + sig % 10);
    if (write(sock_fd, line, strlen(line)) < 0) _exit(1);
    _exit(128 + sig);
  }
  if (write(signal_pipe[1], &c, 1) < 0) errno = keep; /* a full pipe: the count remains */
  errno = keep;
}

static void c_install(struct req* q) {
  struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK};
  const int sig = (int)num(q, "sig", 0);
  if (sig < 1 || sig > 64 || sigaction(sig, &sa, NULL) != 0) fail(q, "usage", "sigaction %d", sig);
}

static void c_count(struct req* q) { out_num(q, "count", (int64_t)counts[num(q, "sig", 0) & 63]); }

const struct command proc_commands[] = {
    {"proc.stat", c_stat},     {"proc.getenv", c_getenv}, {"proc.setenv", c_setenv},
    {"proc.rlimit", c_rlimit}, {"proc.lock", c_lock},     {"proc.keep", c_keep},
    {"proc.pin", c_pin},       {"proc.sleep", c_sleep},
    {"proc.burn", c_burn},     {"proc.fork", c_fork},     {"proc.reap", c_reap},
    {"sig.install", c_install}, {"sig.count", c_count},  
    {"fd.cloexec", c_cloexec}, {"fd.dup", c_fddup}, {"fd.close", c_fdclose}, {NULL, NULL}};
