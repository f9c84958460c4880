/* signals.c: Go's goroutines run on small stacks in the middle of its heap. A handler that runs there, because it
 * was installed without SA_ONSTACK, writes over what lies below. Go gives that flag to the handlers that exist when
 * it starts, and no later one.
 *
 *  1. Go's threads block every signal that others can send. They inherit that, but Go unblocks a few in each new
 *     thread, SIGPROF and SIGCHLD among them. So every such thread begins with a signal of ours pending, which Go
 *     unblocks in the same moment, and whose handler has these blocked again before any other can be delivered.
 *  2. A host's thread blocks them, and has Go's signal stack, while it is in Go; outside it has its own mask and
 *     stack.
 *  3. Handlers without the flag are given it when the host calls init, listen or connect: should one still get in,
 *     all is well. */
#define _GNU_SOURCE
#include "inside.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define BIT(sig) (1ull << ((sig)-1))
#define SIGNALS 64
/* A thread raises the first six itself; 32 and 33 are glibc's, whose handlers need little. */
#define OTHERS \
  ~(BIT(SIGILL) | BIT(SIGTRAP) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGSEGV) | BIT(SIGSYS) | BIT(32) | BIT(33))
/* No kernel sends SIGSTKFLT, and Go unblocks it. */
#define OURS SIGSTKFLT

#define OF_THREAD static __thread __attribute__((tls_model("initial-exec")))
OF_THREAD int of_go;            /* this thread is Go's */
OF_THREAD int bound;            /* Go knows this thread of the host's */
OF_THREAD volatile int closing; /* Go is about to unblock signals here */
OF_THREAD stack_t stack_in_go = {.ss_flags = SS_DISABLE}; /* where Go's handlers run on this thread of the host's */

/* struct sigaction of the kernel: glibc's functions refuse its own two signals, and replace the restorer. */
struct action {
  void* handler;
  unsigned long flags;
  void* restorer;
  uint64_t mask;
};

static int action_of(int sig, struct action* a) { return (int)syscall(SYS_rt_sigaction, sig, NULL, a, sizeof a->mask); }
static uint64_t set_mask(int how, uint64_t mask) {
  uint64_t before = 0;
  syscall(SYS_rt_sigprocmask, how, &mask, &before, sizeof mask);
  return before;
}

static void close_again(int sig, siginfo_t* info, void* context) {
  (void)sig;
  (void)info;
  /* the kernel's mask is the first word; SIGURG is as Go wants it */
  if (closing) *(uint64_t*)(void*)&((ucontext_t*)context)->uc_sigmask |= OTHERS & ~BIT(SIGURG);
  closing = 0;
}

int weft_thread_of_go(void) { return of_go; }

static int is_ours(const struct action* a) { return a->handler == (void*)(uintptr_t)close_again; }

/* Without our signal, as when the host uses it, what Go unblocks stays so. */
static void have_closed(void) {
  struct action a;
  if (action_of(OURS, &a) || !is_ours(&a)) return;
  closing = 1;
  syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), OURS);
}

static uint64_t lacked; /* signals whose handlers were given the flag, and nobody has asked */

/* A handler that the host replaces between the two calls is lost: Go takes the same risk. */
static void give_stacks(void) {
  for (int sig = 1; sig <= SIGNALS; sig++) {
    struct action a;
    if (action_of(sig, &a) || a.handler == (void*)SIG_DFL || a.handler == (void*)SIG_IGN || a.flags & SA_ONSTACK)
      continue;
    a.flags |= SA_ONSTACK;
    if (!syscall(SYS_rt_sigaction, sig, &a, NULL, sizeof a.mask) && sig != 32 && sig != 33)
      __atomic_or_fetch(&lacked, BIT(sig), __ATOMIC_RELAXED);
  }
}

uint64_t weft_signal_stacks(void) {
  give_stacks();
  return __atomic_exchange_n(&lacked, 0, __ATOMIC_RELAXED);
}

void guest_signals_start(void) {
  struct sigaction a, now;
  give_stacks();
  if (sigaction(OURS, NULL, &now) || now.sa_handler != SIG_DFL) return;
  a.sa_sigaction = close_again;
  a.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigfillset(&a.sa_mask);
  sigaction(OURS, &a, NULL);
}

uint64_t guest_block(void) { return set_mask(SIG_BLOCK, OTHERS); }
void guest_unblock(uint64_t before) { set_mask(SIG_SETMASK, before); }

void guest_thread_of_go(void) {
  of_go = 1;
  have_closed();
}

/* Set in Go's C part once a host's thread stays known to Go between calls: while there are keys. */
extern uintptr_t x_cgo_pthread_key_created __attribute__((weak));

/* Every call of C into Go passes crosscall2; the linker puts this before it. */
void __real_crosscall2(void (*fn)(void*), void* arg, int n, size_t context) __attribute__((weak));
void __wrap_crosscall2(void (*fn)(void*), void* arg, int n, size_t context);
void __wrap_crosscall2(void (*fn)(void*), void* arg, int n, size_t context) {
  if (of_go) {
    __real_crosscall2(fn, arg, n, context);
    return;
  }
  stack_t own;
  int saved = errno;
  uint64_t before = guest_block();
  int kept = sigaltstack(&stack_in_go, &own); /* fails in a handler that runs on it */
  if (!bound) { /* Go has not seen this thread, and unblocks signals when it does */
    give_stacks();
    have_closed();
  }
  errno = saved;
  __real_crosscall2(fn, arg, n, context);
  saved = errno;
  closing = 0;
  bound = &x_cgo_pthread_key_created && x_cgo_pthread_key_created;
  if (!kept) sigaltstack(&own, &stack_in_go);
  /* one that Go caused by writing to a closed socket: outside of Go it would end the process */
  if (!(before & BIT(SIGPIPE))) {
    uint64_t pipe = BIT(SIGPIPE);
    syscall(SYS_rt_sigtimedwait, &pipe, NULL, &(struct timespec){0, 0}, sizeof pipe);
  }
  guest_unblock(before);
  errno = saved;
}
