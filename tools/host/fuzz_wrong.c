/* Calls with something wrong in them: stale and invented objects, objects of another kind, counts, sizes, devices
 * and handles that cannot be, NULL where something must be. Each must be refused, and the connections must go on as
 * if it had not been. */
#include "fuzz.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static struct end* some_end(struct fuzz* f) { return &f->pair[draw(f, PAIRS)].end[draw(f, 2)]; }

/* A value that is or was a handle of something. */
static void* some_handle(struct fuzz* f) {
  struct end* e = some_end(f);
  switch (draw(f, 6)) {
    case 0: return e->comm;
    case 1: return e->mr[draw(f, MRS)].mh;
    case 2: return e->op[draw(f, OPS)].req;
    case 3: return f->pair[draw(f, PAIRS)].listen;
    case 4: return f->ctx;
    default: return f->dead[draw(f, DEAD)];
  }
}

/* A value that is no object at all, now. Those with a bit of a handle turned leave the bits alone that count slabs and
 * generations: a connection that is still being made, and given to nobody yet, may have the next. */
static void* none(struct fuzz* f) {
  uint64_t v = 0;
  switch (draw(f, 6)) {
    case 0: return NULL;
    case 1: v = draw(f, 64); break;
    case 2: v = draw(f, UINT64_MAX); break;
    case 3: v = (uint64_t)(uintptr_t)place_at(f, 0); break;
    case 4: v = (uint64_t)(uintptr_t)some_handle(f) ^ 1ULL << (chance(f, 50) ? draw(f, 16) : 46 + draw(f, 18)); break;
    default: v = (uint64_t)(uintptr_t)f->dead[draw(f, DEAD)]; break;
  }
  return alive(f, (void*)(uintptr_t)v) ? NULL : (void*)(uintptr_t)v;
}

enum kind { SEND, RECV, LISTEN, REQUEST, MEMORY, CONTEXT };

/* A value that is no object of that kind: none, or a live one of another. */
static void* not_a(struct fuzz* f, enum kind kind) {
  struct pair* p = &f->pair[draw(f, PAIRS)];
  struct end* e = &p->end[draw(f, 2)];
  if (chance(f, 60)) return none(f);
  const enum kind other = (enum kind)((kind + 1 + draw(f, 5)) % 6);
  switch (other) {
    case SEND: return p->end[SENDER].comm;
    case RECV: return p->end[RECEIVER].comm;
    case LISTEN: return p->listen;
    case REQUEST: return e->op[draw(f, OPS)].req;
    case MEMORY: return e->mr[draw(f, MRS)].mh;
    default: return f->ctx;
  }
}

static int odd_int(struct fuzz* f) {
  static const int odd[] = {-1, 0, 9, 32, 33, 255, 4096, 1 << 16, 1 << 30, INT_MAX, INT_MIN};
  return odd[draw(f, sizeof odd / sizeof *odd)];
}

/* The answer must be an error; where "not yet" is one too, no object may come of it. A connection that has ended
 * takes what is posted without looking at its memory: then test must answer the error. p: whose connection it is, or
 * NULL. */
static void refused(struct fuzz* f, const struct pair* p, const char* what, int rc, void* got) {
  int done = 0, sizes[GROUP] = {0};
  if (got && (!p || !p->spoiled || CALL(f, "test", net_test(f->t, got, &done, sizes), "%p", got) == 0 || done))
    wrong(f, "%s gave %p for what it must refuse", what, got);
  f->refused += rc != 0;
  f->accepted += rc == 0;
}
static void refused_now(struct fuzz* f, const char* what, int rc) {
  if (rc == 0) wrong(f, "%s accepted what it must refuse", what);
  f->refused++;
}

/* NULL is what was never made: there is nothing to end. */
static void refused_unless_null(struct fuzz* f, const char* what, const void* handle, int rc) {
  if (handle) return refused_now(f, what, rc);
  if (rc != 0) wrong(f, "%s of NULL answers %d", what, rc);
  f->accepted++;
}

/* A size that no message has. */
static int64_t negative(struct fuzz* f) {
  return f->t->version < SINCE_WIDE_SIZES ? -1 - (int64_t)draw(f, INT_MAX) : INT64_MIN + (int64_t)draw(f, 1 << 20);
}

static void no_send(struct fuzz* f, struct pair* p) {
  struct mr* mr = &p->end[SENDER].mr[draw(f, MRS)];
  const bool good = p->end[SENDER].comm && mr->mh && chance(f, 50);
  void *comm = good ? p->end[SENDER].comm : not_a(f, SEND), *mh = mr->mh, *data = place_at(f, mr->first), *req = NULL;
  int64_t size = 1 + (int64_t)draw(f, ROOM); /* an empty message needs no memory */
  if (good) switch (draw(f, 5)) {
      case 0: mh = not_a(f, MEMORY); break;
      case 1: /* behind the registration */
        data = place_at(f, mr->first + mr->count);
        size++;
        break;
      case 2:
        data = place_at(f, mr->first) - 1;
        size += 2;
        break;
      case 3:
        data = NULL;
        size++;
        break;
      default: size = negative(f); break;
    }
  const int rc = CALL(f, "isend", f->t->isend(f->t, comm, data, size, (int)draw(f, TAGS), mh, NULL, &req),
    "! %p %p %lld mh %p", comm, data, (long long)size, mh);
  refused(f, good ? p : NULL, "isend", rc, req);
}

/* A message that its receive has no room for ends both sides' requests with an error, where it is not cut. */
static void too_large(struct fuzz* f, struct pair* p) {
  struct end* e = &p->end[SENDER];
  for (int i = 0; i < MRS; i++) {
    struct mr* mr = &e->mr[i];
    if (!e->comm || !mr->mh || mr->count < 3) continue;
    struct op* o = NULL;
    for (int k = 0; k < OPS && !o; k++) o = e->op[k].req ? NULL : &e->op[k];
    if (!o) return;
    p->spoiled = true;
    CALL(f, "isend", f->t->isend(f->t, e->comm, place_at(f, mr->first), 2 * ROOM, 0, mr->mh, NULL, &o->req),
      "too large, %p", e->comm);
    return;
  }
}

static void no_recv(struct fuzz* f, struct pair* p) {
  struct end* e = &p->end[RECEIVER];
  struct mr* mr = &e->mr[draw(f, MRS)];
  const bool good = e->comm && mr->mh && chance(f, 60);
  int n = fuzz_grouped(f) ? 1 + (int)draw(f, GROUP) : 1, tags[GROUP] = {0};
  void *comm = good ? e->comm : not_a(f, RECV), *data[GROUP], *mh[GROUP], *req = NULL;
  int64_t sizes[GROUP];
  for (int i = 0; i < GROUP; i++) {
    data[i] = place_at(f, mr->first);
    mh[i] = mr->mh;
    sizes[i] = ROOM;
  }
  const int at = (int)draw(f, (uint64_t)n);
  int null = -1;
  if (good) switch (draw(f, fuzz_grouped(f) ? 6 : 4)) {
      case 0: mh[at] = not_a(f, MEMORY); break;
      case 1: data[at] = place_at(f, mr->first + mr->count); break;
      case 2: data[at] = NULL; break;
      case 3: sizes[at] = negative(f); break;
      case 4: null = (int)draw(f, 4); break;
      default:
        n = odd_int(f);
        if (n > 0 && n <= GROUP) n = 0;
    }
  const int rc = CALL(f, "irecv",
    call_irecv(f, comm, n, null == 0 ? NULL : data, null == 1 ? NULL : sizes, null == 2 ? NULL : tags,
      null == 3 ? NULL : mh, &req),
    "! %p n %d, entry %d: %p %lld mh %p, array %d NULL", comm, n, at, data[at], (long long)sizes[at], mh[at], null);
  refused(f, good ? p : NULL, "irecv", rc, req);
}

static void no_flush(struct fuzz* f, struct pair* p) {
  struct end* e = &p->end[RECEIVER];
  struct mr* mr = &e->mr[draw(f, MRS)];
  const bool good = e->comm && mr->mh && chance(f, 60);
  void *data[GROUP] = {0}, *mh[GROUP] = {0}, *req = NULL, *comm = good ? e->comm : not_a(f, RECV);
  int n = 1, sizes[GROUP] = {1}, null = -1;
  data[0] = place_at(f, good ? mr->first : 0);
  mh[0] = good ? mr->mh : none(f);
  if (good) switch (draw(f, fuzz_grouped(f) ? 3 : 1)) {
      case 0: sizes[0] = -1 - (int)draw(f, INT_MAX); break;
      case 1: null = (int)draw(f, 3); break;
      default: n = odd_int(f);
    }
  const int rc = CALL(f, "iflush",
    call_iflush(f, comm, n, null == 0 ? NULL : data, null == 1 ? NULL : sizes, null == 2 ? NULL : mh, &req),
    "! %p n %d of %d bytes, array %d NULL", comm, n, sizes[0], null);
  refused(f, NULL, "iflush", rc, req);
}

static void no_test(struct fuzz* f, struct pair* p) {
  (void)p;
  int done = 0, sizes[GROUP] = {0};
  void* const req = not_a(f, REQUEST);
  const int rc = CALL(f, "test", net_test(f->t, req, &done, chance(f, 50) ? sizes : NULL), "! %p", req);
  if (done) wrong(f, "test says that a request is done that is none");
  refused(f, NULL, "test", rc, NULL);
}

static void no_close(struct fuzz* f, struct pair* p) {
  (void)p;
  static const struct {
    enum slot slot;
    enum kind kind;
    const char* name;
  } close[] = {{S_closeSend, SEND, "closeSend"}, {S_closeRecv, RECV, "closeRecv"},
    {S_closeListen, LISTEN, "closeListen"}};
  const int i = (int)draw(f, 3);
  void* const comm = not_a(f, close[i].kind);
  const int rc = CALL(f, "close", ((int (*)(void*))slot_fn(f->t, close[i].slot))(comm), "! %s %p", close[i].name, comm);
  refused_unless_null(f, close[i].name, comm, rc);
}

static void no_reg(struct fuzz* f, struct pair* p) {
  struct end* e = &p->end[draw(f, 2)];
  void *comm = e->comm, *data = place_at(f, 0), *mh = NULL;
  int64_t size = ROOM;
  int type = NCCL_PTR_HOST;
  const int what = (int)draw(f, 4);
  if (what == 0 || !comm) comm = chance(f, 50) ? not_a(f, SEND) : none(f);
  else if (what == 1) data = NULL;
  else if (what == 2) type = odd_int(f);
  else size = chance(f, 50) ? 0 : f->t->version < SINCE_WIDE_REGMR ? INT_MIN : INT64_MAX;
  const bool some = comm == e->comm || (comm && (comm == p->end[0].comm || alive(f, comm)));
  const int rc = CALL(f, "regMr", f->t->regMr(f->t, comm, data, size, type, &mh), "! %p %p %lld type %d", comm, data,
    (long long)size, type);
  if (rc == 0 && mh && some) { /* such memory may be in order after all */
    f->accepted++;
    if (CALL(f, "deregMr", SLOT(f, deregMr, int, void*, void*)(comm, mh), "%p %p", comm, mh) != 0)
      wrong(f, "deregMr of what regMr gave");
    if (!alive(f, mh)) buried(f, mh);
    return;
  }
  refused(f, NULL, "regMr", rc, mh);
}

static void no_dmabuf(struct fuzz* f, struct pair* p) {
  void *const comm = chance(f, 50) && p->end[SENDER].comm ? p->end[SENDER].comm : not_a(f, SEND), *mh = NULL;
  if (!slot_fn(f->t, S_regMrDmaBuf)) return;
  const uint64_t offset = draw(f, 2) ? 0 : draw(f, UINT64_MAX);
  const int fd = (int)draw(f, 3) - 1, type = chance(f, 50) ? NCCL_PTR_CUDA : odd_int(f);
  const int rc = CALL(f, "regMrDmaBuf",
    SLOT(f, regMrDmaBuf, int, void*, void*, size_t, int, uint64_t, int, void**)(comm, place_at(f, 0), ROOM, type,
    offset, fd, &mh),
                      "! %p type %d offset %llu fd %d", comm, type, (unsigned long long)offset, fd);
  refused(f, NULL, "regMrDmaBuf", rc, mh);
}

static void no_dereg(struct fuzz* f, struct pair* p) {
  struct end* e = &p->end[draw(f, 2)];
  void *comm = e->comm, *mh = not_a(f, MEMORY);
  if (!comm || chance(f, 30)) comm = none(f);
  const int rc = CALL(f, "deregMr", SLOT(f, deregMr, int, void*, void*)(comm, mh), "! %p %p", comm, mh);
  refused_unless_null(f, "deregMr", mh, rc);
}

static void no_device(struct fuzz* f, struct pair* p) {
  _Alignas(64) char handle[128] = {0}, props[1024];
  void* comm = NULL;
  int dev = odd_int(f);
  (void)p;
  if (dev >= 0 && dev < f->ndev) dev = f->ndev;
  switch (draw(f, 3)) {
    case 0: return refused_now(f, "listen",
      CALL(f, "listen", f->t->listen(f->t, f->ctx, dev, handle, &comm), "! device %d", dev));
    case 1: return refused_now(f, "connect",
      CALL(f, "connect", f->t->connect(f->t, f->ctx, dev, handle, &comm, NULL, NULL), "! device %d", dev));
    default: break;
  }
  if (f->t->version == 2) return;
  refused_now(f, "getProperties",
    CALL(f, "getProperties", SLOT(f, getProperties, int, int, void*)(dev, props), "! device %d", dev));
}

static void no_accept(struct fuzz* f, struct pair* p) {
  void *const comm = not_a(f, LISTEN), *got = NULL;
  (void)p;
  const int rc = CALL(f, "accept", f->t->accept(f->t, comm, &got, NULL), "! %p", comm);
  refused_now(f, "accept", rc);
  if (got) wrong(f, "accept gave %p", got);
}

/* Handles of nobody, and of a listener, with a byte or two wrong. A host of v2 to v4 waits out such a connect:
 * rarely there. */
static void no_handle(struct fuzz* f, struct pair* p) {
  _Alignas(64) char handle[128];
  void* comm = NULL;
  (void)p;
  if (!fuzz_grouped(f) && draw(f, 1000)) return;
  for (size_t i = 0; i < sizeof handle; i++) handle[i] = (char)draw(f, 256);
  if (chance(f, 70)) {
    if (f->stray) CALL(f, "closeListen", SLOT(f, closeListen, int, void*)(f->stray), "%p", f->stray);
    buried(f, f->stray);
    f->stray = NULL;
    if (CALL(f, "listen", f->t->listen(f->t, f->ctx, 0, handle, &f->stray), "stray") != 0)
      return wrong(f, "listen failed");
    for (int i = 0; i < 2; i++) handle[draw(f, f->t->version < SINCE_GROUPS ? 64 : 128)] ^= (char)(1 << draw(f, 8));
  }
  const int rc = CALL(f, "connect", f->t->connect(f->t, f->ctx, 0, chance(f, 5) ? NULL : handle, &comm, NULL, NULL),
    "! handle");
  f->refused += rc != 0;
  f->accepted += rc == 0;
  if (comm) CALL(f, "close", SLOT(f, closeSend, int, void*)(comm), "%p, which connected", comm);
}

static void no_context(struct fuzz* f, struct pair* p) {
  _Alignas(64) char handle[128];
  int32_t attr[16];
  void *got = NULL, *const ctx = not_a(f, CONTEXT);
  (void)p;
  if (f->t->version < SINCE_CONTEXTS) return;
  if ((uintptr_t)ctx < 16) return; /* small ones stand for the tables without contexts */
  for (int i = 0; i < 16; i++) attr[i] = odd_int(f);
  switch (draw(f, 5)) {
    case 0: return refused_now(f, "finalize", CALL(f, "finalize", SLOT(f, finalize, int, void*)(ctx), "! %p", ctx));
    case 1: return refused_now(f, "setNetAttr",
      CALL(f, "setNetAttr", SLOT(f, setNetAttr, int, void*, void*)(ctx, attr), "! %p", ctx));
    case 2: return refused_now(f, "listen",
      CALL(f, "listen", f->t->listen(f->t, ctx, 0, handle, &got), "! ctx %p", ctx));
    case 3: return refused_now(f, "setNetAttr",
      CALL(f, "setNetAttr", SLOT(f, setNetAttr, int, void*, void*)(f->ctx, NULL), "! NULL"));
    default: break;
  }
  if (CALL(f, "setNetAttr", SLOT(f, setNetAttr, int, void*, void*)(f->ctx, attr), "odd") != 0)
    wrong(f, "setNetAttr failed: what it says is a hint");
}

/* Slots that no device of ours serves, and a device made of what is none. */
static void no_service(struct fuzz* f, struct pair* p) {
  void *const comm = chance(f, 50) ? p->end[draw(f, 2)].comm : none(f), *got = NULL;
  struct {
    int ndevs, devs[MAX_GROUP]; /* no table has so many */
  } v = {.ndevs = odd_int(f)};
  int d = -1;
  const int what = (int)draw(f, 3);
  if (what == 0 && slot_fn(f->t, S_getDeviceMr))
    CALL(f, "getDeviceMr", SLOT(f, getDeviceMr, int, void*, void*, void**)(comm, none(f), &got), "! %p", comm);
  if (what == 1 && slot_fn(f->t, S_irecvConsumed))
    CALL(f, "irecvConsumed", SLOT(f, irecvConsumed, int, void*, int, void*)(comm, odd_int(f), none(f)), "! %p", comm);
  if (what == 2 && slot_fn(f->t, S_makeVDevice)) {
    for (int i = 0; i < MAX_GROUP; i++) v.devs[i] = odd_int(f);
    if (v.ndevs > 0 && v.ndevs <= f->t->devs) v.ndevs = f->t->devs + 1;
    refused_now(f, "makeVDevice",
      CALL(f, "makeVDevice", SLOT(f, makeVDevice, int, int*, void*)(&d, &v), "! %d devices", v.ndevs));
  }
}

void wrong_call(struct fuzz* f, struct pair* p) {
  static void (*const all[])(struct fuzz*, struct pair*) = {
      no_send,   no_send,   no_recv,  no_recv,   no_recv,   no_flush,  no_test,    no_test,    no_test,
      no_close,  no_reg,    no_dereg, no_dmabuf, no_device, no_accept, no_context, no_service, no_handle};
  if (draw(f, 2000) == 0) return too_large(f, p);
  all[draw(f, sizeof all / sizeof *all)](f, p);
}
