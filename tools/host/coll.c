/* Whole collectives through a collNet table, timed and checked as nccl-tests does.
 *
 * NCCL hands a collective over in pieces; up to `window` of them are under way here, tested in the order in which they
 * were started. A piece of an all-gather or a reduce-scatter is a window of what all ranks have, counted in bytes from
 * rank 0's first; a broadcast is an all-gather whose window is the root's part. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

enum { MAX_WINDOW = 32 };
#define BROADCAST S_NONE /* no slot of its own */

struct run {
  const struct table* t;
  struct req* q;
  struct clock clock;
  void *comm, *smh, *rmh;
  char *send, *recv;
  char* flag;      /* 64 bytes, registered as both are */
  enum slot kind;  /* iallreduce, iallgather, ireducescatter or BROADCAST */
  int64_t count;   /* elements: of an all-reduce or a broadcast; else of one rank's part */
  int64_t elem, piece;
  struct values v;
  int rank, root, window;
  int64_t nulls; /* calls that gave no request */
};

static int64_t share(const struct run* r) { return r->count * r->elem; }

/* From where to where a collective's pieces go, in bytes. */
static int64_t lower(const struct run* r) { return r->kind == BROADCAST ? r->root * share(r) : 0; }
static int64_t upper(const struct run* r) {
  if (r->kind == S_iallreduce) return share(r);
  return r->kind == BROADCAST ? lower(r) + share(r) : r->v.nranks * share(r);
}

/* A piece of the window, `at` to `end`. Of a rank's own part a piece sees what of it is inside. */
static void cut(const struct run* r, int64_t at, int64_t end, struct collective* c) {
  const int64_t mine = r->rank * share(r), inside = at > mine ? at - mine : 0;
  const int64_t own = inside < share(r) ? inside : 0;
  *c = (struct collective){.slot = r->kind == BROADCAST ? S_iallgather : r->kind, .comm = r->comm, .smh = r->smh,
                           .rmh = r->rmh, .type = r->v.type, .op = r->v.op, .per_rank = share(r), .offset = at,
                           .bytes = end - at, .n = 1};
  if (r->kind == S_iallreduce) {
    c->send = r->send + at;
    c->recv = r->recv + at;
    c->count = (end - at) / r->elem;
  } else if (r->kind == S_ireducescatter) {
    c->parts[0] = (struct part){r->smh, r->send + at, end - at};
    c->recv = r->recv + own;
  } else {
    c->parts[0] = (struct part){r->rmh, r->recv + at - lower(r), end - at};
    c->send = r->send + own;
  }
}

static bool stop(struct run* r, enum slot s, int rc) {
  if (rc != 0) loop_failed(r->q, slot_names[s], rc);
  return rc != 0;
}

static int start(struct run* r, const struct collective* c, void** req) {
  *req = NULL;
  flight_enter(slot_names[c->slot]);
  const int rc = r->t->collective(r->t, c, req);
  flight_leave();
  r->nulls += rc == 0 && !*req;
  return rc;
}

static bool tested(struct run* r, void* req, int* ok) {
  int size = 0;
  return !stop(r, S_test, LOOP("test\0", net_test(r->t, req, ok, &size)));
}

/* One collective, whole. A collective of nothing is handed over all the same. */
static bool once(struct run* r) {
  const int64_t from = lower(r), to = upper(r), pieces = to > from ? (to - from + r->piece - 1) / r->piece : 1;
  void* reqs[MAX_WINDOW];
  int64_t started = 0, done = 0;
  uint32_t idle = 0;
  while (done < pieces) {
    const int64_t before = started + done;
    if (started < pieces && started - done < r->window) {
      struct collective c;
      const int64_t at = from + started * r->piece, end = to - at > r->piece ? at + r->piece : to;
      void* req;
      cut(r, at, end, &c);
      if (stop(r, c.slot, start(r, &c, &req))) return false;
      if (req) reqs[started++ % r->window] = req;
    }
    if (done < started) {
      int ok = 0;
      if (!tested(r, reqs[done % r->window], &ok)) return false;
      done += ok;
    }
    if (started + done > before) continue;
    sched_yield();
    if ((++idle & 255) == 0 && clock_late(&r->clock, r->q)) return false;
  }
  return true;
}

/* Nobody leaves before everybody has entered: an all-reduce of one element, of a type that is reduced anyhow. */
static bool barrier(struct run* r) {
  struct run b = *r;
  if (r->kind != S_iallreduce && r->kind != S_ireducescatter) b.v.type = ncclFloat32;
  b.kind = S_iallreduce;
  b.count = 1;
  b.elem = b.piece = value_size(b.v.type);
  b.send = b.recv = b.flag;
  memset(b.flag, 0, 64);
  return once(&b);
}

/* The input, and a result's memory that holds none: of a collective in place the input is in it. */
static void fill(struct run* r) {
  memset(r->recv, 0xff, (size_t)((r->kind == S_iallgather ? r->v.nranks : 1) * share(r)));
  values_fill(r->send, 0, (r->kind == S_ireducescatter ? r->v.nranks : 1) * r->count, &r->v, r->rank);
}

static void verify(const struct run* r, struct verdict* found) {
  struct values v = r->v;
  switch (r->kind) {
    case S_iallreduce:
      values_check(r->recv, 0, r->count, &v, found);
      break;
    case S_ireducescatter:
      values_check(r->recv, r->rank * r->count, r->count, &v, found);
      break;
    case BROADCAST:
      v.of = r->root;
      values_check(r->recv, 0, r->count, &v, found);
      break;
    default: /* an all-gather */
      for (v.of = 0; v.of < v.nranks; v.of++) values_check(r->recv + v.of * share(r), 0, r->count, &v, found);
  }
}

/* Tells equal results from others: the ranks' are to be equal bit by bit. */
static uint64_t digest(const char* p, int64_t n, uint64_t h) {
  for (int64_t i = 0; i < n; i += 8) {
    uint64_t w = 0;
    memcpy(&w, p + i, n - i < 8 ? (size_t)(n - i) : 8);
    h = (h ^ w) * 0x9E3779B97F4A7C15ULL;
    h ^= h >> 32;
  }
  return h;
}

static bool asked(struct run* r, struct req* q) {
  static const struct {
    const char* name;
    enum slot kind;
  } kinds[] = {{"allreduce", S_iallreduce}, {"allgather", S_iallgather},
               {"reducescatter", S_ireducescatter}, {"broadcast", BROADCAST}};
  size_t k = 0;
  *r = (struct run){.t = table_of(q, "coll"), .q = q, .comm = ptr(q, "comm"), .smh = ptr(q, "smh"),
                    .rmh = ptr(q, "rmh"), .send = ptr(q, "send"), .recv = ptr(q, "recv"), .flag = ptr(q, "flag"),
                    .count = num(q, "count", 0), .rank = (int)num(q, "rank", 0), .root = (int)num(q, "root", 0),
                    .window = (int)num(q, "window", 8)};
  r->v = (struct values){.type = (int)num(q, "type", ncclFloat32), .op = (int)num(q, "op", ncclSum), .of = -1,
                         .nranks = (int)num(q, "nranks", 1), .seed = (uint64_t)num(q, "seed", 1)};
  if (!r->t) return false;
  while (k < 3 && strcmp(kinds[k].name, str(q, "kind", "allreduce")) != 0) k++;
  r->kind = kinds[k].kind;
  r->elem = value_size(r->v.type);
  if (!r->elem || r->v.nranks < 1 || r->window < 1 || r->window > MAX_WINDOW || r->count < 0 || !r->flag) {
    fail(q, "usage", "want a type, ranks, a flag, a count, and a window of 1 to %d", MAX_WINDOW);
    return false;
  }
  r->piece = num(q, "piece", 1 << 29) / r->elem * r->elem;
  if (r->piece < r->elem) r->piece = r->elem;
  return true;
}

static void c_run(struct req* q) {
  struct run r;
  struct verdict found = {.first = -1};
  if (!asked(&r, q)) return;
  const int64_t warm = num(q, "warm", 1), iters = num(q, "iters", 1), checks = num(q, "checks", 1);
  int64_t total = 0, min = INT64_MAX, max = 0;
  uint64_t hash = 1;
  clock_start(&r.clock, q);
  fill(&r);
  if (!barrier(&r)) return;
  for (int64_t i = -warm; i < iters; i++) {
    const int64_t from = now_ns();
    if (!once(&r)) return;
    const int64_t ns = now_ns() - from;
    if (i < 0) continue;
    total += ns;
    min = ns < min ? ns : min;
    max = ns > max ? ns : max;
  }
  for (int64_t i = 0; i < checks; i++) {
    r.v.seed += (uint64_t)i * 7919;
    fill(&r);
    if (!once(&r)) return;
    verify(&r, &found);
    hash = digest(r.recv, (r.kind == S_iallgather ? r.v.nranks : 1) * share(&r), hash);
  }
  out_double(q, "us", (double)total / 1000);
  out_double(q, "min", (double)min / 1000);
  out_double(q, "max", (double)max / 1000);
  out_num(q, "wrong", found.bad);
  out_num(q, "first", found.first);
  out_double(q, "ulp", found.ulp);
  out_ptr(q, "hash", (const void*)hash);
  out_num(q, "nulls", r.nulls);
}

const struct command coll_commands[] = {{"coll.run", c_run}, {NULL, NULL}};
