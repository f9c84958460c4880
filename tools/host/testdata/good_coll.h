/* The collNet calls of the good plugin, independent of the table version: every rank sends what it has to rank 0 over
 * TCP, which reduces in the order of ranks and sends back what each is to get. A thread of each comm carries out one
 * operation after the other, so that starting one only queues it. */
#pragma once
#include "good_ops.h"

enum { C_DEPTH = 32, C_PARTS = 8, C_RANKS = 64, C_PATIENCE = 2 };
enum c_kind { ALLREDUCE, ALLGATHER, REDUCESCATTER };

struct c_part { void *mh; char *addr; size_t size; };
struct c_op {
  enum c_kind kind;
  char *send, *recv; void *smh, *rmh;
  size_t bytes; int type, op;   /* of the all-reduce, or of the window */
  size_t per_rank, offset;
  int nparts; struct c_part part[C_PARTS];
};
struct c_request { void *comm; int done, rc; size_t size; };
struct c_comm {
  pthread_mutex_t lock; pthread_cond_t some; pthread_t thread;
  int n, rank, fd[C_RANKS]; /* of rank 0: everybody's; of the others: rank 0's, for all of them */
  int rc, closing;
  struct c_op q[C_DEPTH]; void *req[C_DEPTH]; unsigned head, tail;
  unsigned untested; /* requests given out and not yet seen done */
};
struct c_hello { uint32_t magic, rank; };

static const int c_size[12] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

/* ---- what two ranks' elements come to ---- */
#define COMBINE(T, A) \
  do { \
    T *x = a; const T *y = b; \
    for (size_t i = 0; i < n; i++) { \
      A v = (A)x[i], w = (A)y[i]; \
      x[i] = (T)(op == 0 ? v + w : op == 1 ? v * w : op == 2 ? (v > w ? v : w) : v < w ? v : w); \
    } \
  } while (0)
static void c_combine(void *a, const void *b, size_t n, int type, int op) {
  switch (type) {
    case 0: if (op > 1) COMBINE(int8_t, int8_t); else COMBINE(uint8_t, uint8_t); break;
    case 1: COMBINE(uint8_t, uint8_t); break;
    case 2: if (op > 1) COMBINE(int32_t, int32_t); else COMBINE(uint32_t, uint32_t); break;
    case 3: COMBINE(uint32_t, uint32_t); break;
    case 4: if (op > 1) COMBINE(int64_t, int64_t); else COMBINE(uint64_t, uint64_t); break;
    case 5: COMBINE(uint64_t, uint64_t); break;
    case 7: COMBINE(float, float); break;
    case 8: COMBINE(double, double); break;
  }
}
static void (*c_reduce)(void *, const void *, size_t, int, int) = c_combine;
static int good_c_support(int type, int op, int *yes) {
  *yes = type >= 0 && type <= 8 && type != 6 && op >= 0 && op <= 3;
  return OK;
}

/* ---- whole messages ---- */
static int c_write(int fd, const char *p, size_t n) {
  while (n) {
    ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
    if (k <= 0 && errno != EINTR) return REMOTE;
    if (k > 0) p += k, n -= (size_t)k;
  }
  return OK;
}
static int c_read(int fd, char *p, size_t n) {
  while (n) {
    ssize_t k = recv(fd, p, n, 0);
    if (k == 0 || (k < 0 && errno != EINTR)) return REMOTE;
    if (k > 0) p += k, n -= (size_t)k;
  }
  return OK;
}

/* What of a rank's own part lies in the window: where in the window, and how much. */
static size_t c_own(const struct c_op *o, int rank, size_t *at) {
  size_t from = (size_t)rank * o->per_rank, to = from + o->per_rank, end = o->offset + o->bytes;
  from = from > o->offset ? from : o->offset;
  to = to < end ? to : end;
  *at = from - o->offset;
  return to > from ? to - from : 0;
}
static void c_gather_parts(const struct c_op *o, char *to) {
  for (int i = 0; i < o->nparts; to += o->part[i++].size) memcpy(to, o->part[i].addr, o->part[i].size);
}
static void c_scatter_parts(const struct c_op *o, const char *from) {
  for (int i = 0; i < o->nparts; from += o->part[i++].size) memcpy(o->part[i].addr, from, o->part[i].size);
}
static void c_input(const struct c_comm *c, const struct c_op *o, char *all) {
  size_t at, n = c_own(o, c->rank, &at);
  if (o->kind == ALLREDUCE) memcpy(all, o->send, o->bytes);
  if (o->kind == ALLGATHER) memcpy(all + at, o->send, n);
  if (o->kind == REDUCESCATTER) c_gather_parts(o, all);
}
static void c_output(const struct c_comm *c, const struct c_op *o, const char *all) {
  size_t at, n = c_own(o, c->rank, &at);
  if (o->kind == ALLREDUCE) memcpy(o->recv, all, o->bytes);
  if (o->kind == ALLGATHER) c_scatter_parts(o, all);
  if (o->kind == REDUCESCATTER) memcpy(o->recv, all + at, n);
}

/* Rank 0 gets what the others have, of nothing too: then nobody is ahead of anybody. */
static int c_collect(struct c_comm *c, const struct c_op *o, char *all) {
  char *other = calloc(1, o->bytes + 1);
  int rc = OK;
  c_input(c, o, all);
  if (c->rank) rc = c_write(c->fd[0], all, o->bytes + 1);
  for (int k = 1; !rc && c->rank == 0 && k < c->n; k++) {
    size_t at, n = c_own(o, k, &at);
    rc = c_read(c->fd[k], other, o->bytes + 1);
    if (!rc && o->kind == ALLGATHER) memcpy(all + at, other + at, n);
    if (!rc && o->kind != ALLGATHER) c_reduce(all, other, o->bytes / (size_t)c_size[o->type], o->type, o->op);
  }
  free(other);
  return rc;
}
static int c_spread(struct c_comm *c, const struct c_op *o, char *all) {
  int rc = OK;
  for (int k = 1; !rc && c->rank == 0 && k < c->n; k++) rc = c_write(c->fd[k], all, o->bytes + 1);
  return c->rank ? c_read(c->fd[0], all, o->bytes + 1) : rc;
}
static int good_c_perform(struct c_comm *c, const struct c_op *o) {
  char *all = calloc(1, o->bytes + 1);
  int rc = c_collect(c, o, all);
  if (!rc) rc = c_spread(c, o, all);
  if (!rc) c_output(c, o, all);
  free(all);
  return rc;
}

static void c_shut(struct c_comm *c) {
  for (int k = 0; k < c->n; k++)
    if (c->fd[k] >= 0 && (c->rank == 0 || k == 0)) shutdown(c->fd[k], SHUT_RDWR);
}

static int (*c_perform)(struct c_comm *, const struct c_op *) = good_c_perform;

static void *c_work(void *arg) {
  struct c_comm *c = arg;
  pthread_mutex_lock(&c->lock);
  while (!c->closing) {
    if (c->head == c->tail) { pthread_cond_wait(&c->some, &c->lock); continue; }
    struct c_op o = c->q[c->head % C_DEPTH];
    struct c_request *r = object_get(c->req[c->head % C_DEPTH], COLL_REQUEST, 0);
    int rc = c->rc;
    pthread_mutex_unlock(&c->lock);
    if (!rc) rc = c_perform(c, &o);
    pthread_mutex_lock(&c->lock);
    if (rc && !c->rc) c->rc = rc, c_shut(c), warn(__func__, __LINE__, "NET/good : a rank is lost: is its process alive?");
    c->head++;
    if (r) r->rc = rc, r->size = o.bytes, r->done = 1;
  }
  pthread_mutex_unlock(&c->lock);
  return NULL;
}

/* ---- setup ---- */
static int good_c_listen(void *ctx, int dev, void *handle, void **out) {
  struct handle h;
  void *l;
  int rc = good_listen(ctx, dev, handle, &l);
  if (rc) return rc;
  memcpy(&h, handle, sizeof h);
  h.magic = 0x600dc011;
  memcpy(handle, &h, sizeof h);
  *out = object_new(COLL_LISTEN, object_get(l, LISTEN, 1));
  return OK;
}
static int c_dial(const struct handle *h) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = h->port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, (void *)&a, sizeof a) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}
static int c_wait(int fd) {
  struct pollfd p = {fd, POLLIN, 0};
  return poll(&p, 1, C_PATIENCE * 1000) > 0;
}
static int c_enter(struct c_comm *c, const struct handle *zero) {
  struct c_hello me = {0x600dc011, (uint32_t)c->rank};
  c->fd[0] = c_dial(zero);
  return c->fd[0] < 0 ? REMOTE : c_write(c->fd[0], (char *)&me, sizeof me);
}
static int c_take(struct c_comm *c, int listener) {
  for (int came = 1; came < c->n; came++) {
    struct c_hello who;
    int fd = c_wait(listener) ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
    if (fd < 0) return REMOTE;
    if (!c_wait(fd) || c_read(fd, (char *)&who, sizeof who) || who.magic != 0x600dc011 || who.rank >= (uint32_t)c->n) return close(fd), REMOTE;
    c->fd[who.rank] = fd;
  }
  return OK;
}
/* Rank 0 takes everybody in, and then tells everybody that all are there. */
static int good_c_meet(struct c_comm *c, const struct handle *zero, int listener) {
  char go = 1;
  int rc = c->rank ? c_enter(c, zero) : c_take(c, listener);
  if (c->rank && !rc) rc = c_wait(c->fd[0]) ? c_read(c->fd[0], &go, 1) : REMOTE;
  for (int k = 1; c->rank == 0 && !rc && k < c->n; k++) rc = c_write(c->fd[k], &go, 1);
  return rc;
}
static int (*c_meet)(struct c_comm *, const struct handle *, int) = good_c_meet;

static void c_free(struct c_comm *c) {
  for (int k = 0; k < c->n; k++)
    if (c->fd[k] >= 0 && (c->rank == 0 || k == 0)) close(c->fd[k]);
  free(c);
}
static int good_c_connect(void **handles, int n, int rank, void *listener, void **out) {
  int fd = (int)(intptr_t)object_get(listener, COLL_LISTEN, 0) - 1;
  struct handle zero;
  *out = NULL;
  if (fd < 0 || n < 1 || n > C_RANKS || rank < 0 || rank >= n) FAIL(INTERNAL, "connect: no listenComm of collNet, or no such rank");
  memcpy(&zero, handles[0], sizeof zero);
  if (zero.magic != 0x600dc011) FAIL(INTERNAL, "connect: not a handle of this collNet");
  struct c_comm *c = calloc(1, sizeof *c);
  c->n = n, c->rank = rank;
  for (int k = 0; k < C_RANKS; k++) c->fd[k] = -1;
  pthread_mutex_init(&c->lock, NULL), pthread_cond_init(&c->some, NULL);
  if (c_meet(c, &zero, fd)) {
    c_free(c);
    FAIL(REMOTE, "connect: a rank did not come");
  }
  pthread_create(&c->thread, NULL, c_work, c);
  *out = object_new(COLL, c);
  return OK;
}

/* ---- memory ---- */
static int good_c_regmr(void *comm, void *data, size_t size, int type, void **mh) {
  *mh = NULL;
  if (!object_get(comm, COLL, 0)) FAIL(INTERNAL, "regMr: unknown collComm");
  if (type != 1) FAIL(INTERNAL, "regMr: only host memory");
  struct mr *m = malloc(sizeof *m);
  *m = (struct mr){data, size, comm};
  *mh = object_new(COLL_MR, m);
  return OK;
}
static int good_c_deregmr(void *comm, void *mh) {
  if (!mh) return OK;
  if (!object_get(comm, COLL, 0)) FAIL(INTERNAL, "deregMr: unknown collComm");
  struct mr *m = object_get(mh, COLL_MR, 1);
  if (!m) FAIL(INTERNAL, "deregMr: unknown mhandle");
  return free(m), OK;
}
static int c_covers(void *mh, const char *data, size_t size) {
  struct mr *m = object_get(mh, COLL_MR, 0);
  return !size || (m && data >= m->base && size <= m->size && data + size <= m->base + m->size);
}
static int c_registered(const struct c_comm *c, const struct c_op *o) {
  size_t at, own = c_own(o, c->rank, &at);
  if (o->kind == ALLREDUCE) return c_covers(o->smh, o->send, o->bytes) && c_covers(o->rmh, o->recv, o->bytes);
  for (int i = 0; i < o->nparts; i++)
    if (!c_covers(o->part[i].mh, o->part[i].addr, o->part[i].size)) return 0;
  return o->kind == ALLGATHER ? c_covers(o->smh, o->send, own) : c_covers(o->rmh, o->recv, own);
}

static int (*c_allowed)(const struct c_comm *, const struct c_op *) = c_registered;

/* ---- operations ---- */
static int good_c_start(void *comm, const struct c_op *o, void **req) {
  struct c_comm *c = object_get(comm, COLL, 0);
  int yes = 1;
  size_t sum = 0;
  *req = NULL;
  if (!c) FAIL(INTERNAL, "collective: unknown collComm");
  if (o->kind != ALLGATHER) good_c_support(o->type, o->op, &yes);
  if (!yes) FAIL(INTERNAL, "collective: this type is not reduced so");
  for (int i = 0; i < o->nparts; i++) sum += o->part[i].size;
  if (o->bytes > 1 << 30 || (o->kind != ALLREDUCE && sum != o->bytes)) FAIL(INTERNAL, "collective: too large, or not the window's size");
  if (!c_allowed(c, o)) FAIL(INTERNAL, "collective: memory not registered");
  pthread_mutex_lock(&c->lock);
  if (c->untested < C_DEPTH) {
    struct c_request *r = calloc(1, sizeof *r);
    *r = (struct c_request){.comm = comm};
    *req = object_new(COLL_REQUEST, r);
    c->q[c->tail % C_DEPTH] = *o, c->req[c->tail % C_DEPTH] = *req;
    c->tail++, c->untested++;
    pthread_cond_signal(&c->some);
  }
  pthread_mutex_unlock(&c->lock);
  return OK;
}
static int good_c_test(void *req, int *done, int *size) {
  struct c_request *r = object_get(req, COLL_REQUEST, 0);
  *done = 0;
  if (!r) FAIL(INTERNAL, "test: unknown request");
  struct c_comm *c = object_get(r->comm, COLL, 0);
  if (!c) FAIL(INTERNAL, "test: the comm is closed");
  pthread_mutex_lock(&c->lock);
  int rc = r->done ? r->rc : OK;
  if (r->done && !rc) {
    *done = 1, c->untested--;
    if (size) *size = (int)r->size;
    free(object_get(req, COLL_REQUEST, 1));
  }
  pthread_mutex_unlock(&c->lock);
  return rc;
}
static int good_c_iflush(void *comm, void *data, int size, void *mh, void **req) {
  (void)data, (void)size, (void)mh;
  if (req) *req = NULL;
  if (!object_get(comm, COLL, 0)) FAIL(INTERNAL, "iflush: unknown collComm");
  return OK;
}
static int good_c_closecoll(void *comm) {
  struct c_comm *c = object_get(comm, COLL, 1);
  if (!comm) return OK;
  if (!c) FAIL(INTERNAL, "closeColl: unknown collComm");
  pthread_mutex_lock(&c->lock);
  c->closing = 1;
  if (c->head != c->tail) c_shut(c);
  pthread_cond_signal(&c->some);
  pthread_mutex_unlock(&c->lock);
  pthread_join(c->thread, NULL);
  return c_free(c), OK;
}
static int good_c_closelisten(void *listener) {
  int fd = (int)(intptr_t)object_get(listener, COLL_LISTEN, 1) - 1;
  if (!listener) return OK;
  if (fd < 0) FAIL(INTERNAL, "closeListen: unknown listenComm");
  return close(fd), OK;
}

/* What the tables call; a broken plugin's constructor replaces members. */
static struct coll_core {
  int (*init)(void **, void *); int (*finalize)(void *); int (*devices)(int *); int (*props)(int, struct props *);
  int (*listen)(void *, int, void *, void **); int (*connect)(void **, int, int, void *, void **); int (*support)(int, int, int *);
  int (*regmr)(void *, void *, size_t, int, void **); int (*deregmr)(void *, void *);
  int (*start)(void *, const struct c_op *, void **); int (*iflush)(void *, void *, int, void *, void **); int (*test)(void *, int *, int *);
  int (*closecoll)(void *), (*closelisten)(void *);
} coll = {good_init, good_finalize, good_devices, good_props, good_c_listen, good_c_connect, good_c_support, good_c_regmr, good_c_deregmr,
          good_c_start, good_c_iflush, good_c_test, good_c_closecoll, good_c_closelisten};
