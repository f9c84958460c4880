/* The host process: reads requests, gives each to its thread, writes replies. */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MAX_WORKERS = 64, MAX_LINE = 64 << 20 };

__thread struct worker* me;
int sock_fd = -1, child_fd = -1;
static struct worker workers[MAX_WORKERS];
static int nworkers;
static struct flight* page;
static pthread_mutex_t write_mu = PTHREAD_MUTEX_INITIALIZER;

extern int signal_pipe[2]; /* proc.c: numbers of signals that handlers counted */
void signal_event(int sig);

int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void write_all(int fd, const char* s, size_t n) {
  while (n > 0) {
    ssize_t k = write(fd, s, n);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return; /* the client has gone; the reader notices */
    s += k;
    n -= (size_t)k;
  }
}

void line_write(const char* s, size_t n) {
  if (child_fd >= 0) { /* a forked child has one thread, and maybe somebody's lock */
    write_all(child_fd, s, n);
    return;
  }
  pthread_mutex_lock(&write_mu);
  write_all(sock_fd, s, n);
  pthread_mutex_unlock(&write_mu);
}

static const struct command* find(const char* name) {
  static const struct command* const all[] = {load_commands, event_commands, mem_commands,
                                              proc_commands, ring_commands, bench_commands,
                                              conn_commands, log_commands, exchange_commands, value_commands,
                                              coll_commands, fuzz_commands, nccl_commands};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    for (const struct command* c = all[i]; c->name; c++)
      if (strcmp(c->name, name) == 0) return c;
  return NULL;
}

void req_run(struct req* q) {
  const int64_t t0 = now_ns();
  q->ns = -1;
  const struct command* c = find(q->cmd);
  if (c)
    c->run(q);
  else if (!slot_command(q))
    fail(q, "usage", "unknown command %s", q->cmd);
  struct text t = {0};
  if (q->code)
    text_add(&t, "%llu err code=%s%s\n", (unsigned long long)q->id, q->code, q->out.s);
  else
    text_add(&t, "%llu ok ns=%lld%s\n", (unsigned long long)q->id,
             (long long)(q->ns >= 0 ? q->ns : now_ns() - t0), q->out.s ? q->out.s : "");
  line_write(t.s, t.len);
  free(t.s);
}

static void* work(void* worker) {
  struct worker* w = me = worker;
  if (w != &workers[0]) pthread_setname_np(pthread_self(), w->name); /* of another thread by /proc: see remember_fds */
  for (;;) {
    pthread_mutex_lock(&w->mu);
    while (!w->head) pthread_cond_wait(&w->some, &w->mu);
    struct req* q = w->head;
    w->head = q->next;
    if (!w->head) w->tail = NULL;
    pthread_mutex_unlock(&w->mu);
    if (strcmp(q->cmd, "exit") == 0) {
      const char* how = str(q, "how", "exit");
      const int code = (int)num(q, "code", 0);
      if (strcmp(how, "_exit") == 0) _exit(code);
      if (strcmp(how, "return") == 0 && w == &workers[0]) return NULL;
      exit(code);
    }
    req_run(q);
    free(q->out.s);
    free(q->line);
    free(q);
  }
}

static struct worker* worker_named(const char* name) {
  for (int i = 0; i < nworkers; i++)
    if (strcmp(workers[i].name, name) == 0) return &workers[i];
  if (nworkers == MAX_WORKERS) return NULL;
  struct worker* w = &workers[nworkers];
  snprintf(w->name, sizeof w->name, "%s", name);
  w->flight = &page[nworkers];
  snprintf(w->flight->name, sizeof w->flight->name, "%s", name);
  pthread_mutex_init(&w->mu, NULL);
  pthread_cond_init(&w->some, NULL);
  nworkers++;
  return w;
}

static void take(char* line) {
  struct req* q = calloc(1, sizeof *q);
  if (!q) abort();
  if (!req_parse(q, line, true)) {
    q->cmd = "(not a request: ID THREAD COMMAND key=value ...)";
    q->thread = "main";
  }
  const bool fresh = nworkers;
  const int before = nworkers;
  struct worker* w = worker_named(q->thread);
  if (!w) w = &workers[0]; /* too many threads: the first one does the rest */
  if (fresh && nworkers > before) {
    pthread_t t;
    pthread_create(&t, NULL, work, w);
    pthread_detach(t);
  }
  pthread_mutex_lock(&w->mu);
  if (w->tail)
    w->tail->next = q;
  else
    w->head = q;
  w->tail = q;
  pthread_cond_signal(&w->some);
  pthread_mutex_unlock(&w->mu);
}

/* The reader has a thread of its own, so that no plugin call holds it up. */
static void* reader(void* unused) {
  (void)unused;
  size_t cap = 1 << 16, len = 0;
  char* b = malloc(cap);
  for (;;) {
    struct pollfd p[2] = {{.fd = sock_fd, .events = POLLIN}, {.fd = signal_pipe[0], .events = POLLIN}};
    if (poll(p, 2, -1) < 0 && errno != EINTR) break;
    unsigned char sig;
    if ((p[1].revents & POLLIN) && read(signal_pipe[0], &sig, 1) == 1) signal_event(sig);
    if (!p[0].revents) continue;
    if (len == cap && (cap >= MAX_LINE || !(b = realloc(b, cap *= 2)))) break;
    const ssize_t n = read(sock_fd, b + len, cap - len);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    len += (size_t)n;
    char* nl;
    while ((nl = memchr(b, '\n', len))) {
      const size_t used = (size_t)(nl - b) + 1;
      *nl = 0;
      take(strdup(b));
      memmove(b, b + used, len -= used);
    }
  }
  _exit(0);
}

int main(int argc, char** argv) {
  remember_fds();
  int flight_fd = -1;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--fd") == 0) sock_fd = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--flight") == 0) flight_fd = atoi(argv[i + 1]);
  }
  if (sock_fd < 0) {
    fprintf(stderr, "weft-host is started by weft and by tests: weft-host --fd N --flight M\n");
    return 2;
  }
  fcntl(sock_fd, F_SETFD, FD_CLOEXEC);
  page = flight_fd < 0 ? MAP_FAILED
                       : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, flight_fd, 0);
  if (flight_fd >= 0) fcntl(flight_fd, F_SETFD, FD_CLOEXEC);
  if (page == MAP_FAILED) page = calloc(MAX_WORKERS, sizeof *page);
  if (!page || pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
    perror("weft-host");
    return 1;
  }
  worker_named("main");
  char hello[64];
  line_write(hello, (size_t)snprintf(hello, sizeof hello, "- ready pid=%d\n", getpid()));
  pthread_t t;
  if (pthread_create(&t, NULL, reader, NULL) != 0) return 1;
  work(&workers[0]);
  return 0;
}
