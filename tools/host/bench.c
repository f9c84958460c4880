/* One-way bandwidth, ping-pong and the price of test, over a bound table or, as the
 * reference, over a plain non-blocking TCP socket with the same buffers. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "host.h"

enum { MAX_WINDOW = 256 };

static char* slot_at(char* buf, int64_t i, int64_t size, int64_t span) {
  const int64_t step = (size + 63) & ~(int64_t)63, n = step ? span / step : 0;
  return buf + (n > 1 ? i % n * step : 0);
}

static void sleep_ns(int64_t ns, bool spin) {
  const int64_t until = now_ns() + ns;
  struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
  if (!spin && ns > 0) nanosleep(&t, NULL);
  while (spin && now_ns() < until) continue;
}

/* role send or recv; window requests in flight; check compares with the seed pattern; yield lets others run when
 * nothing has ended, as NCCL's proxy does. */
static void c_bw(struct req* q) {
  const struct table* t = table_of(q, "net");
  if (!t) return;
  const bool sender = strcmp(str(q, "role", "send"), "send") == 0;
  void *comm = ptr(q, "comm"), *mh = ptr(q, "mh"), *reqs[MAX_WINDOW];
  char* buf = ptr(q, "buf");
  const int64_t size = num(q, "size", 8), count = num(q, "count", 1), span = num(q, "span", size);
  int64_t window = num(q, "window", 8), posted = 0, done = 0, tests = 0, nulls = 0;
  const bool yield = num(q, "yield", 0) != 0;
  size_t bad = 0;
  if (window > MAX_WINDOW) window = MAX_WINDOW;
  sleep_ns(num(q, "delay", 0) * 1000000, false);
  struct clock c;
  clock_start(&c, q);
  while (done < count) {
    while (posted < count && posted - done < window) {
      void *data = slot_at(buf, posted, size, span), *ph = NULL, *req = NULL;
      int64_t n = size;
      int tag = 1, rc;
      if (sender && num(q, "check", 0)) pattern_fill(data, (size_t)size, (uint64_t)(num(q, "seed", 0) + posted));
      rc = sender ? LOOP("isend", t->isend(t, comm, data, n, tag, mh, NULL, &req))
                  : LOOP("irecv", t->irecv(t, comm, 1, &data, &n, &tag, &mh, &ph, &req));
      if (rc != 0) return loop_failed(q, sender ? "isend" : "irecv", rc);
      if (!req) {
        nulls++;
        break;
      }
      reqs[posted++ % window] = req;
    }
    int ok = 0, got = 0, rc = 0;
    if (done < posted) {
      rc = LOOP("test\0", net_test(t, reqs[done % window], &ok, &got));
      tests++;
    }
    if (rc != 0) return loop_failed(q, "test", rc);
    if (ok && !sender) {
      if (got != size) return fail(q, "fault", "message %lld has %d bytes", (long long)done, got);
      if (num(q, "check", 0))
        bad += pattern_check(slot_at(buf, done, size, span), (size_t)size,
                             (uint64_t)(num(q, "seed", 0) + done), NULL) != 0;
    }
    done += ok;
    if (!ok && ((tests + nulls) & 1023) == 0 && clock_late(&c, q)) return;
    if (!ok && yield) sched_yield();
  }
  clock_cpu(&c, q);
  out_num(q, "bytes", size * count);
  out_num(q, "tests", tests);
  out_num(q, "nulls", nulls);
  out_num(q, "bad", (int64_t)bad);
}

/* The same over a socket: as fast as write and read alone can be. */
static void c_plain_bw(struct req* q) {
  const int fd = (int)num(q, "fd", -1);
  const bool sender = strcmp(str(q, "role", "send"), "send") == 0;
  const bool yield = num(q, "yield", 0) != 0;
  char* buf = ptr(q, "buf");
  const int64_t size = num(q, "size", 8), count = num(q, "count", 1), span = num(q, "span", size);
  struct clock c;
  uint32_t idle = 0;
  clock_start(&c, q);
  for (int64_t i = 0; i < count; i++) {
    char* data = slot_at(buf, i, size, span);
    for (int64_t at = 0; at < size;) {
      const ssize_t n = sender ? send(fd, data + at, (size_t)(size - at), MSG_NOSIGNAL | MSG_DONTWAIT)
                               : recv(fd, data + at, (size_t)(size - at), MSG_DONTWAIT);
      if (n > 0) {
        at += n;
      } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        return fail(q, "fault", "socket: %s", n ? strerror(errno) : "closed by the peer");
      } else {
        if ((++idle & 1023) == 0 && clock_late(&c, q)) return;
        if (yield) sched_yield();
      }
    }
  }
  clock_cpu(&c, q);
  out_num(q, "bytes", size * count);
}

/* What one copy costs: each message from the first half of the buffer to the second, by one thread. */
static void c_plain_copy(struct req* q) {
  char* buf = ptr(q, "buf");
  const int64_t size = num(q, "size", 8), count = num(q, "count", 1), half = num(q, "span", 2 * size) / 2;
  struct clock c;
  clock_start(&c, q);
  for (int64_t i = 0; i < count; i++) {
    memcpy(slot_at(buf + half, i, size, half), slot_at(buf, i, size, half), (size_t)size);
    __asm__ volatile("" ::: "memory");
    if ((i & 1023) == 0 && clock_late(&c, q)) return;
  }
  clock_cpu(&c, q);
  out_num(q, "bytes", size * count);
}

/* One ping-pong, by whichever transport. */
struct pair {
  const struct table* t;
  void *send, *recv, *smh, *rmh, *rreq[MAX_WINDOW], *sreq;
  int fd;
  int64_t size, ahead, posted, got, total; /* receives: at most ahead are posted at a time */
  char *out, *in;
  const struct clock* clock;
  struct req* q;
};

static int post_recv(struct pair* p) {
  void *ph = NULL, *req;
  int64_t n = p->size;
  int tag = 1, rc = 0;
  for (uint32_t i = 1; p->fd < 0 && rc == 0 && p->posted < p->total && p->posted - p->got < p->ahead; i++) {
    void* data = p->in + p->posted % p->ahead * ((p->size + 63) & ~(int64_t)63);
    rc = LOOP("irecv", p->t->irecv(p->t, p->recv, 1, &data, &n, &tag, &p->rmh, &ph, &req));
    if (rc == 0 && req) p->rreq[p->posted++ % p->ahead] = req;
    if ((i & 1023) == 0 && clock_late(p->clock, p->q)) return -1;
  }
  return rc;
}

static int do_send(struct pair* p) {
  int rc = 0;
  if (p->fd >= 0)
    return send(p->fd, p->out, (size_t)p->size, MSG_NOSIGNAL) == p->size ? 0 : (int)ncclRemoteError;
  p->sreq = NULL;
  for (uint32_t i = 1; rc == 0 && !p->sreq; i++) {
    rc = LOOP("isend", p->t->isend(p->t, p->send, p->out, p->size, 1, p->smh, NULL, &p->sreq));
    if ((i & 1023) == 0 && clock_late(p->clock, p->q)) return -1;
  }
  return rc;
}

/* Polls the receive, and the send that may still be under way. */
static int do_recv(struct pair* p) {
  int64_t at = 0;
  int rc = 0, ok = 0, size;
  for (uint32_t i = 1; rc == 0; i++) {
    if (p->fd >= 0) {
      const ssize_t n = recv(p->fd, p->in + at, (size_t)(p->size - at), MSG_DONTWAIT);
      if (n == 0 || (n < 0 && errno != EAGAIN)) return (int)ncclRemoteError;
      at += n > 0 ? n : 0;
      if (at == p->size) return 0;
    } else {
      if (!ok) rc = LOOP("test\0", net_test(p->t, p->rreq[p->got % p->ahead], &ok, &size));
      int sent = !p->sreq;
      if (rc == 0 && !sent) rc = LOOP("test\0", net_test(p->t, p->sreq, &sent, &size));
      if (sent) p->sreq = NULL;
      if (ok && sent) p->got++;
      if (ok && sent) return rc;
    }
    if ((i & 1023) == 0 && clock_late(p->clock, p->q)) return -1;
  }
  return rc;
}

static void ping_pong(struct req* q, const struct table* t, int fd) {
  const bool ping = strcmp(str(q, "role", "ping"), "ping") == 0, spin = num(q, "spin", 0) != 0;
  const int64_t iters = num(q, "iters", 1000), warm = num(q, "warm", 100);
  const int64_t idle = num(q, "idle", 0) * 1000, size = num(q, "size", 8), ahead = num(q, "ahead", 1);
  struct clock c;
  struct pair p = {.t = t, .fd = fd, .send = ptr(q, "send"), .recv = ptr(q, "recv"),
                   .smh = ptr(q, "smh"), .rmh = ptr(q, "rmh"), .size = size, .out = ptr(q, "buf"),
                   .in = (char*)ptr(q, "buf") + ((size + 63) & ~(int64_t)63), .clock = &c, .q = q,
                   .ahead = ahead, .total = warm + iters};
  if (ahead < 1 || ahead > MAX_WINDOW) return fail(q, "usage", "ahead is 1 to %d", MAX_WINDOW);
  int64_t* ns = calloc((size_t)(iters + 1), sizeof *ns);
  if (!ns) return fail(q, "nomem", "%lld samples", (long long)iters);
  clock_start(&c, q);
  int rc = post_recv(&p);
  for (int64_t i = -warm; rc == 0 && i < iters; i++) {
    if (i == 0) {
      const int64_t limit = c.limit;
      clock_start(&c, q);
      c.limit = limit;
    }
    if (ping) {
      sleep_ns(idle, spin);
      const int64_t t0 = now_ns();
      rc = do_send(&p);
      if (rc == 0) rc = post_recv(&p);
      if (rc == 0) rc = do_recv(&p);
      if (i >= 0) ns[i] = (now_ns() - t0) / 2;
    } else {
      rc = do_recv(&p);
      if (rc == 0) rc = do_send(&p);
      if (rc == 0) rc = post_recv(&p);
    }
  }
  int done = !p.sreq, got;
  while (t && rc == 0 && !done) rc = LOOP("test\0", net_test(t, p.sreq, &done, &got));
  if (rc > 0) loop_failed(q, "isend, irecv or test", rc);
  if (rc == 0) {
    clock_cpu(&c, q);
    if (ping) percentiles(q, ns, (int)iters);
  }
  free(ns);
}

static void c_lat(struct req* q) {
  const struct table* t = table_of(q, "net");
  if (t) ping_pong(q, t, -1);
}

static void c_plain_lat(struct req* q) { ping_pong(q, NULL, (int)num(q, "fd", -1)); }

/* What a test costs that finds nothing, and one that finds a finished request. Both
 * ends of the connection are in this process. */
static void c_testcost(struct req* q) {
  enum { N = 8 };
  const struct table* t = table_of(q, "net");
  if (!t) return;
  char* buf = ptr(q, "buf");
  void *smh = ptr(q, "smh"), *rmh = ptr(q, "rmh"), *got[N] = {0}, *sent[N] = {0}, *ph = NULL;
  const int64_t iters = num(q, "iters", 100000);
  struct clock c;
  int rc = 0, ok = 0, size, i = 0, found = 0;
  clock_start(&c, q);
  for (i = 0; i < N && rc == 0 && !clock_late(&c, q); i += got[i] != NULL) {
    void* data = buf + 64 + i * 64;
    int64_t bytes = 8;
    int tag = 1;
    rc = t->irecv(t, ptr(q, "recv"), 1, &data, &bytes, &tag, &rmh, &ph, &got[i]);
  }
  int64_t t0 = now_ns();
  for (int64_t k = 0; k < iters && rc == 0 && !ok; k++) rc = net_test(t, got[N - 1], &ok, &size);
  const double idle = (double)(now_ns() - t0) / (double)iters;
  if (ok) return fail(q, "fault", "a receive is done before anything was sent");
  for (i = 0; i < N && rc == 0 && !clock_late(&c, q);) {
    rc = t->isend(t, ptr(q, "send"), buf, 8, 1, smh, NULL, &sent[i]);
    if (sent[i]) i++;
    if (rc == 0) rc = net_test(t, got[N - 1], &ok, &size);
  }
  for (i = 0; i < N && rc == 0 && !clock_late(&c, q);) {
    int over = 0;
    rc = net_test(t, sent[i], &over, &size);
    i += over;
  }
  while (!ok && rc == 0 && !clock_late(&c, q)) rc = net_test(t, got[N - 1], &ok, &size);
  t0 = now_ns();
  for (i = 0; i < N - 1 && rc == 0; i++) {
    ok = 0;
    rc = net_test(t, got[i], &ok, &size);
    if (ok) got[i] = NULL;
    found += ok;
  }
  const double done = (double)(now_ns() - t0) / (N - 1);
  for (i = 0; i < N - 1 && rc == 0; i++) /* a plugin that completes only what is tested */
    for (ok = !got[i]; !ok && rc == 0 && !clock_late(&c, q);) rc = net_test(t, got[i], &ok, &size);
  if (rc != 0) return loop_failed(q, "irecv, isend or test", rc);
  if (q->code) return;
  out_double(q, "idle", idle);
  out_double(q, "done", done);
  out_num(q, "found", found);
}

const struct command bench_commands[] = {{"bw", c_bw},
                                         {"lat", c_lat},
                                         {"testcost", c_testcost},
                                         {"plain.bw", c_plain_bw},
                                         {"plain.copy", c_plain_copy},
                                         {"plain.lat", c_plain_lat},
                                         {NULL, NULL}};
