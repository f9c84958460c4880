/* Limits, CPU time and percentiles of the loops. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <sys/time.h>

#include "host.h"

void clock_start(struct clock* c, const struct req* q) {
  c->t0 = now_ns();
  c->limit = c->t0 + num(q, "limit", 30000) * 1000000;
  getrusage(RUSAGE_SELF, &c->ru);
  getrusage(RUSAGE_THREAD, &c->thread);
}

bool clock_late(const struct clock* c, struct req* q) {
  if (now_ns() <= c->limit) return false;
  q->ns = -1;
  fail(q, "deadline", "not done within %lld ms", (long long)num(q, "limit", 30000));
  return true;
}

/* A loop that goes on for long may hang: from 10 ms on it sleeps a 50th of its time at each call, at most 1 ms, and
 * leaves the cores to others. */
void clock_nap(const struct clock* c) {
  const int64_t gone = now_ns() - c->t0, nap = gone / 50;
  if (gone < 10 * 1000000) return;
  nanosleep(&(struct timespec){.tv_nsec = nap < 1000000 ? nap : 1000000}, NULL);
}

static int64_t tv_ns(struct timeval t) { return (t.tv_sec * 1000000LL + t.tv_usec) * 1000; }

void clock_cpu(const struct clock* c, struct req* q) {
  struct rusage ru;
  getrusage(RUSAGE_SELF, &ru);
  out_double(q, "us", (double)(now_ns() - c->t0) / 1000);
  out_num(q, "utime", tv_ns(ru.ru_utime) - tv_ns(c->ru.ru_utime));
  out_num(q, "stime", tv_ns(ru.ru_stime) - tv_ns(c->ru.ru_stime));
  getrusage(RUSAGE_THREAD, &ru);
  out_num(q, "thread", tv_ns(ru.ru_utime) + tv_ns(ru.ru_stime) - tv_ns(c->thread.ru_utime) -
                           tv_ns(c->thread.ru_stime));
}

/* The reply of a loop that a plugin's error ended. */
void loop_failed(struct req* q, const char* slot, int rc) {
  out_num(q, "rc", rc);
  out_str(q, "slot", slot);
}

static int by_value(const void* a, const void* b) {
  const int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
  return (x > y) - (x < y);
}

void percentiles(struct req* q, int64_t* ns, int n) {
  static const char* const key[] = {"p50", "p90", "p99", "p999", "max"};
  static const int per_mille[] = {500, 900, 990, 999, 1000};
  double sum = 0, squares = 0;
  if (n <= 0) return;
  qsort(ns, (size_t)n, sizeof *ns, by_value);
  for (int i = 0; i < n; i++) sum += (double)ns[i];
  for (int i = 0; i < 5; i++) out_num(q, key[i], ns[(int64_t)(n - 1) * per_mille[i] / 1000]);
  for (int i = 0; i < n; i++) squares += ((double)ns[i] - sum / n) * ((double)ns[i] - sum / n);
  out_num(q, "min", ns[0]);
  out_double(q, "mean", sum / n);
  out_double(q, "stdev", sqrt(squares / n));
}
