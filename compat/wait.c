#include "wait.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "compat.h"

static int64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void weft_wait_begin(struct wait* w, int kind) {
  w->kind = kind;
  w->begin_ms = now_ms();
  w->deadline_ms = w->begin_ms + weft_blocking_deadline_ms(kind);
}

int64_t weft_wait_ms(const struct wait* w) { return now_ms() - w->begin_ms; }

int weft_wait_epoch(const struct wait* w, uint32_t seen, int slice_ms) {
  int64_t left = w->deadline_ms - now_ms();
  if (left <= 0) return 1;
  if (left > slice_ms) left = slice_ms;
  struct timespec t = {left / 1000, (left % 1000) * 1000000};
  /* Woken, changed already, interrupted or out of time: the caller looks again in any case. */
  syscall(SYS_futex, &weft_progress_epoch, FUTEX_WAIT_PRIVATE, seen, &t, NULL, 0);
  return 0;
}
