/* Calls that must work, and the model of what they must bring: messages of a tag arrive in order, whole, with their
 * size, in the receive that was posted for them, and nothing else is written. */
#include "fuzz.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DRAIN_NS (60LL * 1000000000) /* for what is under way, on a machine however slow */

char* place_at(const struct fuzz* f, int place) { return f->arena + (size_t)place * (ROOM + CANARY); }

bool fuzz_grouped(const struct fuzz* f) { return f->t->version >= SINCE_GROUPS; }

/* These two bypass the host's templates, which look into the arrays. */
int call_irecv(const struct fuzz* f, void* comm, int n, void** data, int64_t* sizes, int* tags, void** mh, void** req) {
  if (f->t->version >= SINCE_WIDE_SIZES || !fuzz_grouped(f))
    return f->t->irecv(f->t, comm, n, data, sizes, tags, mh, NULL, req);
  int narrow[GROUP];
  for (int i = 0; i < GROUP && sizes; i++) narrow[i] = (int)sizes[i];
  return SLOT(f, irecv, int, void*, int, void**, int*, int*, void**, void**)(
    comm, n, data, sizes ? narrow : NULL, tags, mh, req);
}

int call_iflush(const struct fuzz* f, void* comm, int n, void** data, int* sizes, void** mh, void** req) {
  if (fuzz_grouped(f))
    return SLOT(f, iflush, int, void*, int, void**, int*, void**, void**)(comm, n, data, sizes, mh, req);
  if (f->t->version == 4)
    return SLOT(f, iflush, int, void*, void*, int, void*, void**)(comm, data[0], sizes[0], mh[0], req);
  return SLOT(f, flush, int, void*, void*, int, void*)(comm, data[0], sizes[0], mh[0]);
}

static uint64_t sum(const char* s, size_t n) {
  uint64_t h = 14695981039346656037ULL;
  for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 1099511628211ULL;
  return h;
}

/* Memory of receives is the host's again once they are done, deregistered or closed. */
static void quiet(struct fuzz* f, int place) {
  struct place* at = &f->place[place];
  if (at->quiet && at->sum != sum(place_at(f, place), ROOM + CANARY))
    wrong(f, "place %d was written to after deregMr or closeRecv", place);
  at->quiet = false;
}

static void hush(struct fuzz* f, int place) {
  f->place[place].sum = sum(place_at(f, place), ROOM + CANARY);
  f->place[place].quiet = true;
}

static int take(struct fuzz* f, const struct mr* mr) {
  for (int tries = 0; tries < 8; tries++) {
    const int i = mr->first + (int)draw(f, (uint64_t)mr->count);
    if (f->place[i].busy) continue;
    quiet(f, i);
    f->place[i].busy = true;
    return i;
  }
  return -1;
}

static uint64_t pattern(const struct pair* p, int tag, unsigned index) {
  return p->seed + ((uint64_t)tag << 40) + ((uint64_t)index << 16);
}

static struct op* slot_for(struct end* e) {
  for (int i = 0; i < OPS; i++)
    if (!e->op[i].req) return &e->op[i];
  return NULL;
}

/* The operation is over: its memory is free. */
static void forget(struct fuzz* f, struct op* o) {
  for (int i = 0; i < o->n; i++) {
    f->place[o->place[i]].busy = false;
    if (o->mr[i]) o->mr[i]->used--;
  }
  memset(o, 0, sizeof *o);
}

static struct mr* some_mr(struct fuzz* f, struct end* e) {
  for (int tries = 0; tries < 6; tries++) {
    struct mr* mr = &e->mr[draw(f, MRS)];
    if (mr->mh) return mr;
  }
  return NULL;
}

static void reg_places(struct fuzz* f, struct end* e, struct mr* mr, int first, int count) {
  mr->first = first;
  mr->count = count;
  mr->used = 0;
  const int64_t size = (int64_t)mr->count * (ROOM + CANARY);
  const int rc = CALL(f, "regMr", f->t->regMr(f->t, e->comm, place_at(f, mr->first), size, NCCL_PTR_HOST, &mr->mh),
    "%p places %d+%d", e->comm, mr->first, mr->count);
  if (rc != 0 || !mr->mh) wrong(f, "regMr of %lld bytes: %d, handle %p", (long long)size, rc, mr->mh);
}

static void reg(struct fuzz* f, struct end* e) {
  struct mr* mr = &e->mr[draw(f, MRS)];
  if (mr->mh) return;
  const int first = (int)draw(f, PLACES);
  reg_places(f, e, mr, first, 1 + (int)draw(f, (uint64_t)(PLACES - first)));
}

/* A free place and its registration; -1: there is none. */
static int room(struct fuzz* f, struct end* e, struct mr** mr) {
  int place = -1;
  if ((*mr = some_mr(f, e))) place = take(f, *mr);
  if (place >= 0 || !f->draining) return place;
  *mr = &e->spare;
  if (!e->spare.mh) reg_places(f, e, &e->spare, PLACES, SPARE);
  return e->spare.mh ? take(f, &e->spare) : -1;
}

/* A host that gives up deregisters under requests: the comm fails, and nobody writes that memory any more. */
static void dereg(struct fuzz* f, struct pair* p, int end, struct mr* mr) {
  struct end* e = &p->end[end];
  void* const mh = mr->mh;
  p->spoiled |= mr->used > 0;
  const int rc = CALL(f, "deregMr", SLOT(f, deregMr, int, void*, void*)(e->comm, mh), "%p %p, %d in flight", e->comm,
    mh, mr->used);
  if (rc != 0) wrong(f, "deregMr of a live registration: %d", rc);
  for (struct op* o = e->op; o < e->op + OPS; o++)
    for (int i = 0; i < o->n; i++) {
      if (o->mr[i] != mr) continue;
      o->mr[i] = NULL;
      if (end == RECEIVER) hush(f, o->place[i]);
    }
  memset(mr, 0, sizeof *mr);
  if (!alive(f, mh)) buried(f, mh);
}

/* A call on a pair that must work; false: it did not, and may not have. */
static bool worked(struct fuzz* f, struct pair* p, const char* what, int rc) {
  if (rc == 0) return true;
  if (!p->spoiled) wrong(f, "%s: %d on a connection that nothing was done to", what, rc);
  return false;
}

static void send_tag(struct fuzz* f, struct pair* p, int tag) {
  struct end* e = &p->end[SENDER];
  struct op* o = slot_for(e);
  struct mr* mr;
  if (!o || (o->place[0] = room(f, e, &mr)) < 0) return;
  const int size = chance(f, 10) ? 0 : chance(f, 80) ? (int)draw(f, 512) : (int)draw(f, ROOM + 1);
  char* const data = place_at(f, o->place[0]);
  pattern_fill(data, (size_t)size, pattern(p, tag, e->posted[tag]));
  const int rc = CALL(f, "isend", f->t->isend(f->t, e->comm, data, size, tag, mr->mh, NULL, &o->req),
    "%p %d bytes, tag %d", e->comm, size, tag);
  note(f, "  -> %p", o->req);
  o->n = 1;
  o->mr[0] = mr;
  mr->used++;
  if (!worked(f, p, "isend", rc) || !o->req) {
    forget(f, o);
    return;
  }
  p->size[tag][e->posted[tag]++ % INDEXES] = size;
}

static void recv_tags(struct fuzz* f, struct pair* p, int n, const int* tags) {
  struct end* e = &p->end[RECEIVER];
  struct op* o = slot_for(e);
  void *data[GROUP] = {0}, *mh[GROUP] = {0};
  int64_t sizes[GROUP] = {0};
  int tag[GROUP] = {0};
  if (!o) return;
  for (o->n = 0; o->n < n; o->n++) {
    const int i = o->n;
    struct mr* mr;
    if ((o->place[i] = room(f, e, &mr)) < 0) break;
    mr->used++;
    o->mr[i] = mr;
    mh[i] = mr->mh;
    o->tag[i] = tag[i] = tags[i];
    sizes[i] = ROOM;
    data[i] = place_at(f, o->place[i]);
    memset(data[i], 0xC3, ROOM + CANARY);
  }
  int rc = 0;
  if (o->n == n)
    rc = CALL(f, "irecv", call_irecv(f, e->comm, n, data, sizes, tag, mh, &o->req), "%p n %d, first tag %d", e->comm, n,
      tag[0]);
  note(f, "  -> %p", o->req);
  if (o->n < n || !worked(f, p, "irecv", rc) || !o->req) {
    forget(f, o);
    return;
  }
  for (int i = 0; i < n; i++) o->index[i] = e->posted[tag[i]]++;
}

static void arrived(struct fuzz* f, struct pair* p, const struct op* o, const int* sizes) {
  for (int i = 0; i < o->n; i++) {
    const int tag = o->tag[i], want = p->size[tag][o->index[i] % INDEXES];
    const char* const at = place_at(f, o->place[i]);
    if (o->index[i] >= p->end[SENDER].posted[tag]) wrong(f, "a receive is done that nobody has sent for");
    else if (sizes[i] != want)
      wrong(f, "receive %d of %d is done with %d bytes, sent were %d", i, o->n, sizes[i], want);
    else if (pattern_check(at, (size_t)want, pattern(p, tag, o->index[i]), NULL))
      wrong(f, "message %u of tag %d arrived with wrong bytes", o->index[i], tag);
    for (int k = want; k < ROOM + CANARY && !over(f); k++)
      if ((unsigned char)at[k] != 0xC3) wrong(f, "byte %d behind a message of %d was written", k, want);
    f->messages++;
    f->bytes += want;
  }
}

static void test(struct fuzz* f, struct pair* p, int end, struct op* o) {
  int done = -1, sizes[GROUP] = {0};
  void* const req = o->req;
  const int rc = CALL(f, "test", net_test(f->t, req, &done, sizes), "%p", req);
  if (!worked(f, p, "test", rc)) return;
  if (done != 0 && done != 1) wrong(f, "test left done at %d", done);
  if (done != 1) return;
  if (end == RECEIVER && !o->flush && !p->spoiled) arrived(f, p, o, sizes);
  forget(f, o);
  buried(f, req);
}

static void flush(struct fuzz* f, struct pair* p) {
  struct end* e = &p->end[RECEIVER];
  struct op* o = slot_for(e);
  struct mr* mr = some_mr(f, e);
  if (!o || !mr || (o->place[0] = take(f, mr)) < 0) return;
  void *data = place_at(f, o->place[0]), *mh = mr->mh;
  int size = (int)draw(f, ROOM);
  const int rc = CALL(f, "iflush", call_iflush(f, e->comm, 1, &data, &size, &mh, &o->req), "%p", e->comm);
  note(f, "  -> %p", o->req);
  o->n = 1;
  o->flush = true;
  o->mr[0] = mr;
  mr->used++;
  if (!worked(f, p, "iflush", rc) || !o->req) forget(f, o);
}

static void progress(struct fuzz* f, struct pair* p) {
  const int end = (int)draw(f, 2);
  struct op* o = &p->end[end].op[draw(f, OPS)];
  for (int i = 0; i < 6 && !o->req; i++) o = &p->end[end].op[draw(f, OPS)];
  if (o->req) test(f, p, end, o);
}

/* A tag that receives wait for, from the one given on. */
static int wanted(const struct pair* p, int tag) {
  for (int i = 0; i < TAGS; i++, tag = (tag + 1) % TAGS)
    if (p->end[RECEIVER].posted[tag] != p->end[SENDER].posted[tag]) break;
  return tag;
}

void right_call(struct fuzz* f, struct pair* p) {
  const int end = (int)draw(f, 2), what = (int)draw(f, 100);
  struct end* e = &p->end[end];
  const int tag = fuzz_grouped(f) ? (int)draw(f, TAGS) : 0;
  if (!e->comm) return progress(f, p);
  if (what < 6) return reg(f, e);
  if (what < 9) {
    struct mr* mr = some_mr(f, e);
    if (mr && (!mr->used || draw(f, 500) == 0)) dereg(f, p, end, mr);
    return;
  }
  if (what < 12 && p->end[RECEIVER].comm) return flush(f, p);
  if (what < 50) return progress(f, p);
  if (end == SENDER) return send_tag(f, p, chance(f, 80) ? wanted(p, tag) : tag);
  int tags[GROUP], n = fuzz_grouped(f) && chance(f, 40) ? 1 + (int)draw(f, GROUP) : 1;
  for (int i = 0; i < n; i++) tags[i] = n == 1 ? tag : (int)draw(f, TAGS);
  recv_tags(f, p, n, tags);
}

static bool late(struct fuzz* f, const char* what) {
  if (now_ns() < f->until) return false;
  wrong(f, "%s: not in time", what);
  return true;
}

void right_open(struct fuzz* f, struct pair* p) {
  void* handle = aligned_alloc(64, 128);
  if (!handle) abort();
  memset(p, 0, sizeof *p);
  p->seed = draw(f, UINT64_MAX) << 1;
  const int dev = (int)draw(f, (uint64_t)f->ndev), from = (int)draw(f, (uint64_t)f->ndev);
  int rc = CALL(f, "listen", f->t->listen(f->t, f->ctx, dev, handle, &p->listen), "device %d", dev);
  if (rc != 0 || !p->listen) wrong(f, "listen: %d", rc);
  void *dc = NULL, **const devcomm = chance(f, 50) ? &dc : NULL;
  const struct timespec nap = {.tv_nsec = 100000};
  while (!over(f) && !(p->end[SENDER].comm && p->end[RECEIVER].comm) && !late(f, "connect and accept")) {
    const int64_t calls = f->calls;
    void *const send = p->end[SENDER].comm, *const recv = p->end[RECEIVER].comm;
    if (!p->end[SENDER].comm) {
      rc = CALL(f, "connect", f->t->connect(f->t, f->ctx, from, handle, &p->end[SENDER].comm, devcomm, NULL),
        "device %d -> %d", from, dev);
      if (rc != 0) wrong(f, "connect: %d", rc);
    }
    if (!p->end[RECEIVER].comm && (fuzz_grouped(f) || p->end[SENDER].comm)) {
      rc = CALL(f, "accept", f->t->accept(f->t, p->listen, &p->end[RECEIVER].comm, devcomm), "%p", p->listen);
      if (rc != 0) wrong(f, "accept: %d", rc);
    }
    /* How often a host hears nothing is a matter of time: such polls are no calls of the sequence. */
    if (p->end[SENDER].comm == send && p->end[RECEIVER].comm == recv) {
      f->calls = calls;
      nanosleep(&nap, NULL);
    }
    if (!over(f) && chance(f, 10)) wrong_call(f, p);
  }
  note(f, "  -> %p %p", p->end[SENDER].comm, p->end[RECEIVER].comm);
  f->opened++;
  free(handle);
}

/* Tells what is missing: requests are told by their slots in op, messages by how many of a tag were asked for. */
static void never_came(struct fuzz* f, struct pair* p) {
  char text[400];
  int n = 0;
  for (int end = 0; end < 2; end++) {
    const struct end* e = &p->end[end];
    n += snprintf(text + n, sizeof text - (size_t)n, "%s of", end == SENDER ? "sends" : "; receives of");
    for (int tag = 0; tag < TAGS; tag++) n += snprintf(text + n, sizeof text - (size_t)n, " %u", e->posted[tag]);
    int open = 0;
    for (int i = 0; i < OPS; i++) open += e->op[i].req != NULL;
    n += snprintf(text + n, sizeof text - (size_t)n, ", %d open", open);
    for (int i = 0; i < OPS && n < (int)sizeof text - 60; i++) {
      const struct op* o = &e->op[i];
      if (o->req)
        n += snprintf(text + n, sizeof text - (size_t)n, " %s%d:%d", o->flush ? "flush " : "", o->n, o->tag[0]);
    }
  }
  wrong(f, "requests that must come did not: %s", text);
}

/* Asks for what is missing on either side, and tests until every request has come. Groups are matched in their
 * order, so a send that finds no receive yet is asked again. */
void right_drain(struct fuzz* f, struct pair* p) {
  bool open = p->end[SENDER].comm && p->end[RECEIVER].comm;
  const int64_t until = now_ns() + DRAIN_NS;
  f->draining = true;
  while (open && !p->spoiled && !over(f)) {
    if (now_ns() >= until) never_came(f, p);
    open = false;
    for (int end = 0; end < 2; end++) {
      if (!some_mr(f, &p->end[end])) reg(f, &p->end[end]);
      for (int i = 0; i < OPS && !over(f); i++)
        if (p->end[end].op[i].req) {
          open = true;
          test(f, p, end, &p->end[end].op[i]);
        }
    }
    for (int tag = 0; tag < TAGS && !over(f); tag++) {
      const int ahead = (int)(p->end[RECEIVER].posted[tag] - p->end[SENDER].posted[tag]);
      if (ahead > 0) {
        open = true;
        send_tag(f, p, tag);
      }
      if (ahead < 0) {
        open = true;
        recv_tags(f, p, 1, &tag);
      }
    }
    sched_yield();
  }
  f->draining = false;
}

/* Closes an end, with whatever is under way on it; the listener goes with the first. */
void right_close(struct fuzz* f, struct pair* p, int end) {
  struct end* e = &p->end[end];
  if (p->listen) {
    const int rc = CALL(f, "closeListen", SLOT(f, closeListen, int, void*)(p->listen), "%p", p->listen);
    if (rc != 0) wrong(f, "closeListen: %d", rc);
    buried(f, p->listen);
    p->listen = NULL;
  }
  if (!e->comm) return;
  for (int i = 0; i < MRS && !over(f); i++)
    if (e->mr[i].mh) dereg(f, p, end, &e->mr[i]);
  if (e->spare.mh && !over(f)) dereg(f, p, end, &e->spare);
  void *const comm = e->comm, *const fn = slot_fn(f->t, end == SENDER ? S_closeSend : S_closeRecv);
  const int rc = CALL(f, "close", ((int (*)(void*))fn)(comm), "%s %p", end == SENDER ? "send" : "recv", comm);
  if (rc != 0 && !p->spoiled) wrong(f, "close: %d", rc);
  p->spoiled = true; /* the other end may hear of it */
  f->broken++;
  for (int i = 0; i < OPS; i++) {
    struct op* o = &e->op[i];
    if (!o->req) continue;
    for (int k = 0; k < o->n && end == RECEIVER; k++) hush(f, o->place[k]);
    buried(f, o->req);
    forget(f, o);
  }
  memset(e, 0, sizeof *e);
  buried(f, comm);
}

void right_end(struct fuzz* f) {
  for (int i = 0; i < PLACES + SPARE && !over(f); i++) quiet(f, i);
  if (f->stray && !over(f)) CALL(f, "closeListen", SLOT(f, closeListen, int, void*)(f->stray), "%p", f->stray);
}
