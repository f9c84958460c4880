/* polls.c: a process that polls connects and accepts, and counts how often that enters Go: polls LIB. Says "ok". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "net_v8.h"

static int failed(const char* what, int line) {
  printf("line %d: %s\n", line, what);
  exit(1);
}
#define CHECK(what) ((what) ? 0 : failed(#what, __LINE__))

enum { POLLS = 1000 };

static ncclNet_v8_t* net;
static __thread int entered;

/* The library calls this one: a thread of the host changes its signal stack on its way into Go. */
int sigaltstack(const stack_t* new, stack_t* old) {
  entered++;
  return (int)syscall(SYS_sigaltstack, new, old);
}

static void say(ncclDebugLogLevel level, unsigned long flags, const char* file, int line, const char* fmt, ...) {
  (void)level, (void)flags, (void)file, (void)line, (void)fmt;
}

/* An accept that nobody connects to, before, between and after connections. */
static void accepts(void* l) {
  void* r = l;
  for (int i = 0, before = entered; i < POLLS; i++) CHECK(!net->accept(l, &r, NULL) && !r && entered == before);
}

/* Two at once, so that the second waits while the first is taken. */
static void connections(void* l, char* handle) {
  char other[128];
  void *s[2] = {NULL}, *r[2] = {NULL};
  memcpy(other, handle, sizeof other);
  while (!s[0] || !s[1]) {
    if (!s[0]) CHECK(!net->connect(0, handle, &s[0], NULL));
    if (!s[1]) CHECK(!net->connect(0, other, &s[1], NULL));
  }
  for (int i = 0; i < 2; i++)
    while (!r[i]) CHECK(!net->accept(l, &r[i], NULL));
  for (int i = 0; i < 2; i++) CHECK(!net->closeSend(s[i]) && !net->closeRecv(r[i]));
}

/* A connect to a listen that is closed, which is tried until its time is over. Its polls count as such: one that
 * nobody polls would be forgotten then, and the next poll begin another. */
static void connects(char* handle) {
  void* s = handle;
  int rc = 0;
  CHECK(!net->connect(0, handle, &s, NULL) && !s);
  int before = entered, polls = 0;
  time_t limit = time(NULL) + 60;
  for (; !rc; polls++) {
    CHECK((rc = net->connect(0, handle, &s, NULL)) || !s);
    CHECK(rc || entered == before);
    if (polls % POLLS == POLLS - 1) CHECK(time(NULL) < limit && !usleep(1000));
  }
  CHECK(polls > POLLS && entered > before);
}

int main(int argc, char** argv) {
  char handle[128], away[128];
  void *l, *closed;
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  setenv("WEFT_CONNECT_TIMEOUT", "2", 1);
  void* m = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  CHECK(m && (net = dlsym(m, "ncclNetPlugin_v8")) && !net->init(say));
  CHECK(!net->listen(0, away, &closed) && !net->closeListen(closed));
  CHECK(entered > 0);
  connects(away);
  CHECK(!net->listen(0, handle, &l));
  accepts(l);
  connections(l, handle);
  accepts(l);
  connections(l, handle);
  CHECK(!net->closeListen(l));
  CHECK(net->accept(l, &closed, NULL));
  puts("ok");
}
