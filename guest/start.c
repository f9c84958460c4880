/* start.c: Go starts with the first call that needs it. A Go library starts in the loader, from .init_array, where
 * nothing can be refused; the linker puts that entry into a section of its own instead (internal/link). */
#define _GNU_SOURCE
#include "inside.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fastpath.h"
#include "nccl/common.h"

typedef void (*entry)(int argc, char** argv, char** env);
/* Absent where Go was linked to start by itself. */
extern entry weft_go_entry[] __attribute__((weak, visibility("hidden")));

static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static int started;
static struct rlimit files;

void weft_files_before_go(uint64_t* soft, uint64_t* hard) {
  *soft = files.rlim_cur;
  *hard = files.rlim_max;
}

/* What Go finds as argv: no arguments, the environment as it is now, and no auxiliary vector, so that it reads that
 * from /proc. The host may long have changed what the kernel left on the main thread's stack. Go keeps the list, and
 * reads the variables of its own while it starts; weft asks libc. */
static char** arguments(void) {
  size_t n = 0;
  for (char** e = environ; e && *e; e++) n++;
  /* argv's end, GODEBUG, the environment, its end, the vector's end of two words */
  char** list = calloc(n + 5, sizeof *list);
  if (!list) return NULL;
  char** next = list + 1;
  const char* debug = getenv("GODEBUG");
  if (!debug) debug = "";
  /* Go's threads need no SIGURG. What the user says comes later, and counts. */
  if (asprintf(next++, "GODEBUG=asyncpreemptoff=1,%s", debug) < 0) {
    free(list);
    return NULL;
  }
  for (size_t i = 0; i < n && environ[i]; i++)
    if (strncmp(environ[i], "GODEBUG=", 8)) *next++ = environ[i];
  return list;
}

static void say(uintptr_t logger, const char* text) {
  if (logger) ((ncclDebugLogger_t)logger)(NCCL_LOG_WARN, ~0ul, __func__, __LINE__, "NET/weft : %s", text);
}

/* 0, or -1 and why not in text. */
static int start(char* text, size_t size) {
  if (!weft_go_entry) return 0;
  int key = wf_thread_key_make();
  if (key) {
    snprintf(text, size, "init: no thread-specific key is left (pthread_key_create: errno %d): a process has %d, "
      "and its libraries have taken them all; see which of them leaks keys", key, PTHREAD_KEYS_MAX);
    return -1;
  }
  if (guest_keep_threads(text, size)) return -1;
  char** argv = arguments();
  if (!argv) {
    snprintf(text, size, "init: no memory is left to start");
    return -1;
  }
  if (getrlimit(RLIMIT_NOFILE, &files)) files = (struct rlimit){0};
  guest_signals_start();
  weft_go_entry[0](0, argv, argv + 1);
  return 0;
}

/* Go starts with the library where it was linked to: every child is without its threads. */
__attribute__((constructor)) static void at_load(void) {
  if (!weft_go_entry) weft_starts(1);
}

int weft_enter(uintptr_t logger) {
  int forked = weft_forked(); /* first: a child may have inherited the lock, and Go half started */
  if (forked || __atomic_load_n(&started, __ATOMIC_ACQUIRE)) return forked;
  char why[900]; /* NCCL cuts lines at 1024 */
  weft_starts(1);
  pthread_mutex_lock(&starting);
  int was = started, failed = !was && start(why, sizeof why);
  if (!failed) __atomic_store_n(&started, 1, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&starting);
  if (was || failed) weft_starts(-1);
  if (!failed) return 0;
  say(logger, why);
  return ncclSystemError;
}
