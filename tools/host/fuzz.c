/* The sequence of the fuzzer: seed, choice of calls, life of connections, and the log of what was called. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LAST_RESULT = 7 /* ncclInProgress, the highest code that any release knows */, LOG_SIZE = 256 << 10 };

uint64_t draw(struct fuzz* f, uint64_t below) {
  uint64_t z = (f->random += 0x9E3779B97F4A7C15ULL);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return (z ^ (z >> 31)) % below;
}

/* A ring of lines; the newest ends where log_at stands. */
void note(struct fuzz* f, const char* fmt, ...) {
  char line[256];
  int n = snprintf(line, sizeof line, "%lld ", (long long)f->calls);
  va_list a;
  va_start(a, fmt);
  n += vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, a);
  va_end(a);
  if (n > (int)sizeof line - 2) n = (int)sizeof line - 2;
  line[n++] = '\n';
  if (!f->log) return;
  for (int i = 0; i < n; i++) f->log[f->log_at++ % f->log_len] = line[i];
  f->log[f->log_at % f->log_len] = 0; /* where the ring's begin meets its end */
}

void called(struct fuzz* f, const char* slot, int rc) {
  f->calls++;
  note(f, "  = %d", rc);
  if (rc < 0 || rc > LAST_RESULT) wrong(f, "%s answered %d, which is no result code", slot, rc);
}

void wrong(struct fuzz* f, const char* fmt, ...) {
  char text[512];
  va_list a;
  va_start(a, fmt);
  vsnprintf(text, sizeof text, fmt, a);
  va_end(a);
  note(f, "WRONG: %s", text);
  if (!over(f)) fail(f->q, "fault", "call %lld: %s", (long long)f->calls, text);
}

void buried(struct fuzz* f, void* value) {
  if (value) f->dead[f->ndead++ % DEAD] = value;
}

bool alive(const struct fuzz* f, const void* value) {
  if (value == f->ctx || value == f->stray) return value != NULL;
  for (const struct pair* p = f->pair; p < f->pair + PAIRS; p++) {
    if (value && value == p->listen) return true;
    for (const struct end* e = p->end; e < p->end + 2; e++) {
      if (value && value == e->comm) return true;
      for (int i = 0; i < MRS; i++)
        if (value && value == e->mr[i].mh) return true;
      if (value && value == e->spare.mh) return true;
      for (int i = 0; i < OPS; i++)
        if (value && value == e->op[i].req) return true;
    }
  }
  return false;
}

static void begin(struct fuzz* f) {
  struct req* const q = f->q;
  const char* path = str(q, "log", "");
  const int fd = *path ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
  if (fd >= 0 && ftruncate(fd, LOG_SIZE) == 0) {
    void* log = mmap(NULL, LOG_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (log != MAP_FAILED) {
      f->log = log;
      f->log_len = LOG_SIZE;
    }
  }
  if (fd >= 0) close(fd);
  f->random = (uint64_t)num(q, "seed", 1);
  f->ctx = ptr(q, "ctx");
  const size_t size = (size_t)(PLACES + SPARE) * (ROOM + CANARY);
  f->arena = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (f->arena == MAP_FAILED) fail(q, "nomem", "%zu bytes for messages", size);
  if (over(f)) return;
  if (CALL(f, "devices", SLOT(f, devices, int, int*)(&f->ndev), " ") != 0 || f->ndev < 1)
    wrong(f, "there is no device");
}

/* Connections come and go; most calls are on open ones. */
static void step(struct fuzz* f) {
  struct pair* p = &f->pair[draw(f, PAIRS)];
  if (!p->end[SENDER].comm && !p->end[RECEIVER].comm) {
    right_open(f, p);
  } else if (draw(f, 1500) == 0) {
    if (chance(f, 50)) right_drain(f, p);
    right_close(f, p, (int)draw(f, 2));
  } else if (!p->end[SENDER].comm || !p->end[RECEIVER].comm) {
    if (chance(f, 5)) right_close(f, p, p->end[SENDER].comm ? SENDER : RECEIVER);
  }
  if (over(f)) return;
  if (chance(f, 30))
    wrong_call(f, p);
  else
    right_call(f, p);
}

static void c_fuzz(struct req* q) {
  struct clock c;
  struct fuzz* f = calloc(1, sizeof *f);
  if (!f) abort();
  f->q = q;
  f->t = table_of(q, "net");
  clock_start(&c, q);
  f->until = c.limit;
  if (f->t) begin(f);
  const int64_t calls = num(q, "calls", 10000);
  while (!over(f) && f->calls < calls && !clock_late(&c, q)) step(f);
  for (struct pair* p = f->pair; p < f->pair + PAIRS && !over(f); p++) {
    right_drain(f, p);
    for (int end = 0; end < 2 && !over(f); end++) right_close(f, p, end);
  }
  if (f->t) right_end(f);
  if (!over(f)) {
    out_num(q, "calls", f->calls);
    out_num(q, "refused", f->refused);
    out_num(q, "accepted", f->accepted);
    out_num(q, "messages", f->messages);
    out_num(q, "bytes", f->bytes);
    out_num(q, "opened", f->opened);
    out_num(q, "broken", f->broken);
  }
  if (f->arena && f->arena != MAP_FAILED) munmap(f->arena, (size_t)(PLACES + SPARE) * (ROOM + CANARY));
  if (f->log) munmap(f->log, f->log_len);
  free(f);
}

const struct command fuzz_commands[] = {{"fuzz", c_fuzz}, {NULL, NULL}};
