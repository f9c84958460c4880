/* both PLUGIN|verbs [key=value ...]: what a message costs, with both ends of a connection on one thread of one
 * process.
 *
 * Nothing waits for another core here, so the same calls happen in every round, and a machine that others use too
 * gives the same figures. Two of them: CPU time per message, and instructions per message. Those are counted by
 * running with the trap flag set: a signal after every instruction, told apart by the file that the instruction is
 * in. That needs no performance counters, which virtual machines rarely have, but x86-64. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include "both.h"

enum where { WHERE_PLUGIN, WHERE_VERBS, WHERE_ELSE, WHERE_OWN, WHERES };
/* Calls by what they returned: a request, none, done, not yet. */
enum call { CALL_NONE, CALL_IRECV, CALL_ISEND, CALL_ISEND_NULL, CALL_TEST_SEND, CALL_TEST_RECV, CALL_TEST_IDLE, CALLS };
static const char* const call_names[CALLS] =
  {"", "irecv", "isend", "isend-null", "test-send", "test-recv", "test-idle"};

static ncclNet_v12_t* net;
static void *send_comm, *recv_comm, *send_mh, *recv_mh;
static char* buffer;
size_t message_size = 8;
static int window = 8, verbose;

_Noreturn void die(const char* fmt, ...) {
  va_list a;
  va_start(a, fmt);
  vfprintf(stderr, fmt, a);
  va_end(a);
  fputc('\n', stderr);
  exit(1);
}

void must(int rc, const char* call) {
  if (rc) die("%s returned %d", call, rc);
}

static void logger(ncclDebugLogLevel level, unsigned long flags, const char* file, int line, const char* fmt, ...) {
  va_list a;
  (void)flags;
  (void)file;
  (void)line;
  va_start(a, fmt);
  if (level == NCCL_LOG_WARN || verbose) {
    vfprintf(stderr, fmt, a);
    fputc('\n', stderr);
  }
  va_end(a);
}

static int64_t clock_ns(clockid_t id) {
  struct timespec t;
  clock_gettime(id, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* ---- one instruction after the other ---- */

static struct range {
  const char* name;
  uintptr_t lo, hi;
} ranges[WHERES];
static volatile uint64_t steps[WHERES];
static uint64_t by_call[CALLS][WHERES], called[CALLS]; /* the same since the call began, added up by its answer */
static uint64_t before[WHERES];
static uint32_t* profile; /* steps at each byte of the file that is profiled */
static int profiled = WHERE_PLUGIN;

static int each_object(struct dl_phdr_info* o, size_t n, void* arg) {
  (void)n;
  for (int w = 0; w < WHERES; w++) {
    struct range* r = &ranges[w];
    if (w == WHERE_OWN ? o->dlpi_name[0] : !r->name || !strstr(o->dlpi_name, r->name)) continue;
    for (int i = 0; i < o->dlpi_phnum; i++) {
      if (o->dlpi_phdr[i].p_type != PT_LOAD || !(o->dlpi_phdr[i].p_flags & PF_X)) continue;
      r->lo = o->dlpi_addr + o->dlpi_phdr[i].p_vaddr;
      r->hi = r->lo + o->dlpi_phdr[i].p_memsz;
      if (w == profiled && arg) *(uintptr_t*)arg = o->dlpi_addr;
    }
  }
  return 0;
}

#ifdef __x86_64__
static void on_step(int sig, siginfo_t* info, void* context) {
  const uintptr_t at = (uintptr_t)((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
  int w = WHERE_ELSE;
  (void)sig;
  (void)info;
  for (int i = 0; i < WHERES; i++)
    if (at >= ranges[i].lo && at < ranges[i].hi) w = i;
  steps[w]++;
  if (profile && w == profiled) profile[at - ranges[w].lo]++;
}
static inline void step_on(void) { __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc"); }
static inline void step_off(void) { __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc"); }
enum { CAN_STEP = 1 };
#else
static void on_step(int sig, siginfo_t* info, void* context) {
  (void)sig;
  (void)info;
  (void)context;
}
static inline void step_on(void) {}
static inline void step_off(void) {}
enum { CAN_STEP = 0 };
#endif

static void steps_start(const char* plugin) {
  static char stack[1 << 16];
  const char* slash = strrchr(plugin, '/');
  ranges[WHERE_PLUGIN].name = slash ? slash : plugin;
  ranges[WHERE_VERBS].name = "/libibverbs.so";
  dl_iterate_phdr(each_object, NULL);
  sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
  struct sigaction a = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  sigaction(SIGTRAP, &a, NULL);
}

static void steps_clear(void) {
  for (int i = 0; i < WHERES; i++) steps[i] = 0;
  memset(by_call, 0, sizeof by_call);
  memset(called, 0, sizeof called);
}

static void call_begins(void) {
  for (int i = 0; i < WHERES; i++) before[i] = steps[i];
}

static void call_ends(enum call c) {
  for (int i = 0; i < WHERES; i++) by_call[c][i] += steps[i] - before[i];
  called[c]++;
}

static void steps_show(const char* what, double per) {
  if (!CAN_STEP || per <= 0) return;
  printf("%s.plugin %.1f\n%s.verbs %.1f\n%s.else %.1f\n", what, (double)steps[WHERE_PLUGIN] / per, what,
    (double)steps[WHERE_VERBS] / per,
         what, (double)steps[WHERE_ELSE] / per);
}

static void calls_show(void) {
  for (int c = 1; c < CALLS; c++)
    if (called[c])
      printf("%s %.1f %.1f\n", call_names[c], (double)by_call[c][WHERE_PLUGIN] / (double)called[c],
        (double)by_call[c][WHERE_VERBS] / (double)called[c]);
}

/* Offsets in the file and how often an instruction there ran: for addr2line. */
static void profile_write(const char* path, double per) {
  uintptr_t base = 0;
  FILE* f = fopen(path, "we");
  if (!f) die("cannot write %s", path);
  dl_iterate_phdr(each_object, &base);
  for (uintptr_t i = 0; i < ranges[profiled].hi - ranges[profiled].lo; i++)
    if (profile[i]) fprintf(f, "0x%lx %.2f\n", (unsigned long)(ranges[profiled].lo + i - base), profile[i] / per);
  fclose(f);
}

/* ---- the connection ---- */

static void join(int dev) {
  char handle[NCCL_NET_HANDLE_MAXSIZE] = {0};
  ncclNetDeviceHandle_v12_t *sd = NULL, *rd = NULL;
  ncclNetCommConfig_v12_t config = {.trafficClass = NCCL_NET_TRAFFIC_CLASS_UNDEF};
  void *ctx = NULL, *listen = NULL;
  int n = 0;
  must(net->init(&ctx, 1, &config, logger, NULL), "init");
  must(net->devices(&n), "devices");
  if (dev >= n) die("device %d of %d", dev, n);
  must(net->listen(ctx, dev, handle, &listen), "listen");
  const int64_t end = clock_ns(CLOCK_MONOTONIC) + 20000000000;
  while (!send_comm || !recv_comm) {
    if (!send_comm) must(net->connect(ctx, dev, handle, &send_comm, &sd), "connect");
    if (!recv_comm) must(net->accept(listen, &recv_comm, &rd), "accept");
    if (clock_ns(CLOCK_MONOTONIC) > end) die("no connection within 20 s");
  }
  const size_t bytes = 2 * (size_t)window * ((message_size + 63) & ~(size_t)63);
  if (!(buffer = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095))) die("no memory");
  memset(buffer, 1, bytes);
  must(net->regMr(send_comm, buffer, bytes, NCCL_PTR_HOST, &send_mh), "regMr");
  must(net->regMr(recv_comm, buffer, bytes, NCCL_PTR_HOST, &recv_mh), "regMr");
}

/* As NCCL's proxy does: in turn each side posts what it may and tests its oldest request once. */
struct side {
  void* req[WINDOW];
  int64_t posted, done, calls, tests;
};

static inline void turn(struct side* s, int receives, int64_t count) {
  const size_t step = (message_size + 63) & ~(size_t)63;
  while (s->posted < count && s->posted - s->done < window) {
    char* data = buffer + (size_t)(2 * (s->posted % window) + receives) * step;
    void *req = NULL, *ph = NULL, *at = data;
    int tag = 1, rc;
    s->calls++;
    call_begins();
    rc = receives ? net->irecv(recv_comm, 1, &at, &message_size, &tag, &recv_mh, &ph, &req)
      : net->isend(send_comm, data, message_size, tag, send_mh, NULL, &req);
    call_ends(receives ? CALL_IRECV : req ? CALL_ISEND : CALL_ISEND_NULL);
    if (rc) die("%s returned %d", receives ? "irecv" : "isend", rc);
    if (!req) break;
    s->req[s->posted++ % window] = req;
  }
  if (s->done == s->posted) return;
  int ok = 0, got = 0;
  s->tests++;
  call_begins();
  must(net->test(s->req[s->done % window], &ok, &got), "test");
  call_ends(!ok ? CALL_TEST_IDLE : receives ? CALL_TEST_RECV : CALL_TEST_SEND);
  if (ok && receives && (size_t)got != message_size) die("%d bytes came, %zu were sent", got, message_size);
  s->done += ok;
}

static void messages(int64_t count, struct side* from, struct side* to) {
  *from = *to = (struct side){.posted = 0};
  for (int64_t quiet = 0, last = 0; from->done < count || to->done < count; quiet++) {
    turn(to, 1, count);
    turn(from, 0, count);
    if (from->done + to->done != last) {
      quiet = 0;
      last = from->done + to->done;
    }
    if (quiet > 100000000) die("nothing moves: %lld sent, %lld received", (long long)from->done, (long long)to->done);
  }
}

enum { LATE = 1000000 }; /* calls, by which a message has moved */

/* A receive for which nothing comes yet. */
static void idle(int64_t count, int64_t stepped) {
  void *req = NULL, *ph = NULL, *data = buffer;
  int tag = 1, ok = 0, got;
  must(net->irecv(recv_comm, 1, &data, &message_size, &tag, &recv_mh, &ph, &req), "irecv");
  if (!req) die("irecv posts nothing");
  for (int i = 0; i < 100; i++) must(net->test(req, &ok, &got), "test");
  const int64_t t0 = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  for (int64_t i = 0; i < count; i++) must(net->test(req, &ok, &got), "test");
  printf("idle.ns %.1f\n", (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - t0) / (double)count);
  steps_clear();
  step_on();
  for (int64_t i = 0; i < stepped; i++) must(net->test(req, &ok, &got), "test");
  step_off();
  steps_show("idle", (double)stepped);
  void* sreq = NULL;
  for (int i = 0; i < LATE && !sreq; i++)
    must(net->isend(send_comm, buffer, message_size, 1, send_mh, NULL, &sreq), "isend");
  if (!sreq) die("isend finds no receive");
  for (int i = 0; i < LATE && (req || sreq); i++) { /* in turn: a large message goes on in the tests of both ends */
    if (req) must(net->test(req, &ok, &got), "test");
    if (ok) req = NULL;
    ok = 0;
    if (sreq) must(net->test(sreq, &ok, &got), "test");
    if (ok) sreq = NULL;
    ok = 0;
  }
  if (req || sreq) die("a message does not end");
}

int main(int argc, char** argv) {
  int64_t count = 100000, warm = -1, stepped = 512;
  const char* file = NULL;
  int dev = 0, of_idle = 0;
  if (argc < 2)
    die("usage: both PLUGIN|verbs [size=8] [window=8] [count=100000] [warm=N] [steps=512] [dev=0] "
      "[profile=FILE] [in=verbs] [idle=1] [verbose=1]");
  for (int i = 2; i < argc; i++) {
    const char* v = strchr(argv[i], '=');
    if (!v++) die("%s: key=value", argv[i]);
    if (!strncmp(argv[i], "size=", 5)) message_size = strtoul(v, NULL, 0);
    else if (!strncmp(argv[i], "window=", 7)) window = atoi(v);
    else if (!strncmp(argv[i], "count=", 6)) count = atoll(v);
    else if (!strncmp(argv[i], "warm=", 5)) warm = atoll(v);
    else if (!strncmp(argv[i], "steps=", 6)) stepped = atoll(v);
    else if (!strncmp(argv[i], "dev=", 4)) dev = atoi(v);
    else if (!strncmp(argv[i], "verbose=", 8)) verbose = atoi(v);
    else if (!strncmp(argv[i], "profile=", 8)) file = v;
    else if (!strncmp(argv[i], "idle=", 5)) of_idle = atoi(v);
    else if (!strncmp(argv[i], "in=", 3)) profiled = strcmp(v, "verbs") ? WHERE_PLUGIN : WHERE_VERBS;
    else die("%s: no such key", argv[i]);
  }
  if (window < 1 || window > WINDOW) die("window is 1 to %d", WINDOW);
  void* lib = strcmp(argv[1], "verbs") ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!lib && strcmp(argv[1], "verbs")) die("%s", dlerror());
  if (!(net = lib ? dlsym(lib, MEASURED) : &floor_net)) die("%s has no " MEASURED, argv[1]);
  join(dev);
  steps_start(argv[1]);
  struct side from, to;
  messages(warm < 0 ? count / 10 + 1000 : warm, &from, &to);
  const int64_t t0 = clock_ns(CLOCK_THREAD_CPUTIME_ID), all = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  messages(count, &from, &to);
  printf("ns %.1f\n", (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - t0) / (double)count);
  printf("process.ns %.1f\n", (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - all) / (double)count);
  printf("isends %.3f\nirecvs %.3f\nsendtests %.3f\nrecvtests %.3f\n", (double)from.calls / (double)count,
    (double)to.calls / (double)count,
         (double)from.tests / (double)count, (double)to.tests / (double)count);
  if (file && !(profile = calloc(ranges[profiled].hi - ranges[profiled].lo, sizeof *profile))) die("no memory");
  if (CAN_STEP && stepped > 0) {
    steps_clear();
    step_on();
    messages(stepped, &from, &to);
    step_off();
    steps_show("insn", (double)stepped);
    calls_show();
  }
  if (file && of_idle) memset(profile, 0, (ranges[profiled].hi - ranges[profiled].lo) * sizeof *profile);
  uint32_t* counts = profile;
  if (!of_idle) profile = NULL;
  idle(count, stepped);
  profile = counts;
  if (file) profile_write(file, (double)stepped);
  fflush(stdout);
  _Exit(0);
}
