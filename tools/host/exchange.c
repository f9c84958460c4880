/* The steps of an all-to-all: in each, n comms send one message and n receive one, all on one thread. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>

#include "host.h"

struct flow {
  void *comm, *mh, *req;
  char* data;
  bool over; /* its message of this step has ended */
};

static int post(const struct table* t, struct flow* f, bool send, int64_t size) {
  void *data = f->data, *ph = NULL;
  int tag = 1;
  return send ? LOOP("isend", t->isend(t, f->comm, data, size, tag, f->mh, NULL, &f->req))
              : LOOP("irecv", t->irecv(t, f->comm, 1, &data, &size, &tag, &f->mh, &ph, &f->req));
}

/* Goes once over all flows, as NCCL's proxy does; the first n receive. Answers the plugin's code, -1 after a fault
 * of its own. */
static int turn(struct req* q, const struct table* t, struct flow* f, int64_t n, int64_t size, int64_t* moved,
  int64_t* over) {
  int rc = 0;
  for (int64_t i = 0; rc == 0 && i < 2 * n; i++) {
    int ok = 0, got = 0;
    if (f[i].over) continue;
    if (!f[i].req) {
      rc = post(t, &f[i], i >= n, size);
      *moved += f[i].req != NULL;
      continue;
    }
    rc = LOOP("test\0", net_test(t, f[i].req, &ok, &got));
    if (!ok) continue;
    if (i < n && got != size) {
      fail(q, "fault", "a message of %lld bytes has %d", (long long)size, got);
      return -1;
    }
    f[i].over = true;
    *over += 1;
  }
  return rc;
}

static int step(const struct table* t, struct flow* f, int64_t n, int64_t size, const struct clock* c, struct req* q) {
  int rc = 0;
  for (int64_t i = 0; i < 2 * n; i++) {
    f[i].req = NULL;
    f[i].over = false;
  }
  for (int64_t over = 0; rc == 0 && over < 2 * n;) {
    int64_t moved = 0;
    const int64_t before = over;
    rc = turn(q, t, f, n, size, &moved, &over);
    if (moved || over > before) continue;
    if (clock_late(c, q)) return -1;
    sched_yield();
  }
  return rc;
}

/* The comms that move are the first n of the arrays sends and recvs. */
static void c_exchange(struct req* q) {
  const struct table* t = table_of(q, "net");
  if (!t) return;
  const int64_t n = num(q, "n", 1), size = num(q, "size", 8), steps = num(q, "steps", 1000), warm = num(q, "warm", 0);
  const int64_t room = (size + 63) & ~(int64_t)63;
  if (n < 1 || size < 1 || steps < 1 || warm < 0) return fail(q, "usage", "n, size and steps are 1 or more");
  char* buf = aligned_alloc(4096, ((size_t)(2 * n * room) + 4095) & ~(size_t)4095);
  struct flow* f = calloc((size_t)(2 * n), sizeof *f);
  int64_t* ns = calloc((size_t)steps, sizeof *ns);
  struct clock c;
  int rc = 0;
  if (!buf || !f || !ns) abort();
  clock_start(&c, q);
  for (int64_t i = 0; rc == 0 && i < 2 * n; i++) {
    f[i].comm = ((void**)ptr(q, i < n ? "recvs" : "sends"))[i % n];
    f[i].data = buf + i * room;
    pattern_fill(f[i].data, (size_t)size, (uint64_t)i);
    rc = t->regMr(t, f[i].comm, f[i].data, size, NCCL_PTR_HOST, &f[i].mh);
  }
  for (int64_t i = -warm; rc == 0 && i < steps; i++) {
    if (i == 0) {
      const int64_t limit = c.limit;
      clock_start(&c, q);
      c.limit = limit;
    }
    const int64_t from = now_ns();
    rc = step(t, f, n, size, &c, q);
    if (i >= 0) ns[i] = now_ns() - from;
  }
  if (rc > 0) loop_failed(q, "regMr, isend, irecv or test", rc);
  if (rc == 0) {
    clock_cpu(&c, q);
    percentiles(q, ns, (int)steps);
  }
  for (int64_t i = 0; i < 2 * n; i++)
    if (f[i].mh) ((int (*)(void*, void*))slot_fn(t, S_deregMr))(f[i].comm, f[i].mh);
  free(ns);
  free(f);
  free(buf);
}

const struct command exchange_commands[] = {{"conn.exchange", c_exchange}, {NULL, NULL}};
