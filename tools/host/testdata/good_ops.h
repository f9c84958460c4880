/* The net calls of the good plugin, independent of the table version; good.c's tables call them through `core`, so
 * that a broken plugin replaces one. */
#pragma once
#include "good_core.h"

struct props { const char *name; const char *pci; uint64_t guid; int ptr, speed, port, comms, recvs; float latency; size_t p2p, coll; int multi, rail, plane; };

static int good_init(void **ctx, void *log) {
  good_log = log;
  if (ctx) *ctx = object_new(CTX, &good_log);
  return OK;
}
static int good_finalize(void *ctx) {
  if (ctx && !object_get(ctx, CTX, 1)) FAIL(INTERNAL, "finalize: unknown context");
  return OK;
}
static int good_devices(int *n) { return *n = 2, OK; }
static int good_props(int dev, struct props *p) {
  static const char *const names[] = {"good0", "good1"};
  if (dev < 0 || dev > 1) FAIL(INTERNAL, "getProperties: no such device");
  *p = (struct props){names[dev], NULL, (uint64_t)dev, 1, 10000, 0, 65536, GROUP, 1.0f, 1 << 30, 1 << 30, 1, -1, -1};
  return OK;
}
static int good_listen(void *ctx, int dev, void *handle, void **out) {
  (void)ctx;
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t len = sizeof a;
  if (dev < 0 || dev > 1) FAIL(INTERNAL, "listen: no such device");
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || bind(fd, (void *)&a, len) || listen(fd, 1024) || getsockname(fd, (void *)&a, &len)) {
    if (fd >= 0) close(fd);
    FAIL(SYSTEM, "listen: no socket");
  }
  struct handle h = {0x600d600d, a.sin_port, (uint16_t)dev, 0};
  memcpy(handle, &h, sizeof h);
  *out = object_new(LISTEN, (void *)(intptr_t)(fd + 1));
  return OK;
}
/* connect keeps its state in the handle, as the caller repeats it with the same buffer. */
static int good_connect(void *ctx, int dev, void *handle, void **out, int abi) {
  struct handle h;
  (void)ctx;
  memcpy(&h, handle, sizeof h);
  *out = NULL;
  if (dev < 0 || dev > 1) FAIL(INTERNAL, "connect: no such device");
  if (h.magic != 0x600d600d) FAIL(INTERNAL, "connect: not a handle of this plugin");
  int fd = (int)(intptr_t)object_get((void *)(uintptr_t)h.state, CONNECTING, 0) - 1;
  if (fd < 0) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = h.port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if ((fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) < 0) FAIL(SYSTEM, "connect: no socket");
    if (connect(fd, (void *)&a, sizeof a) && errno != EINPROGRESS) return close(fd), warn(__func__, __LINE__, "NET/good : refused"), abi < 6 ? SYSTEM : REMOTE;
    h.state = (uint64_t)(uintptr_t)object_new(CONNECTING, (void *)(intptr_t)(fd + 1));
    memcpy(handle, &h, sizeof h);
  }
  struct pollfd p = {fd, POLLOUT, 0};
  int err = 0;
  socklen_t len = sizeof err;
  if (poll(&p, 1, abi < 5 ? 10000 : 0) <= 0) return OK;
  object_get((void *)(uintptr_t)h.state, CONNECTING, 1);
  h.state = 0, memcpy(handle, &h, sizeof h);
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
  if (err) return close(fd), warn(__func__, __LINE__, "NET/good : refused"), abi < 6 ? SYSTEM : REMOTE;
  *out = object_new(SEND, comm_new(fd, abi));
  return OK;
}
static int good_accept(void *listener, void **out, int abi) {
  int fd = (int)(intptr_t)object_get(listener, LISTEN, 0) - 1;
  *out = NULL;
  if (fd < 0) FAIL(INTERNAL, "accept: unknown listenComm");
  struct pollfd p = {fd, POLLIN, 0};
  if (poll(&p, 1, abi < 5 ? 10000 : 0) <= 0) {
    if (abi < 5) FAIL(SYSTEM, "accept: nobody connected in time");
    return OK;
  }
  if ((fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) < 0) return OK;
  *out = object_new(RECV, comm_new(fd, abi));
  return OK;
}
static struct comm *either(void *h) {
  struct comm *c = object_get(h, SEND, 0);
  return c ? c : object_get(h, RECV, 0);
}
static int good_regmr(void *comm, void *data, size_t size, int type, void **mh) {
  if (!either(comm)) FAIL(INTERNAL, "regMr: unknown comm");
  if (type != 1) FAIL(INTERNAL, "regMr: only host memory");
  struct mr *m = malloc(sizeof *m);
  *m = (struct mr){data, size, comm};
  *mh = object_new(MR, m);
  return OK;
}
/* deregMr is a barrier: what still uses the memory fails its comm, nothing is written afterwards. */
static int good_deregmr(void *comm, void *mh) {
  struct comm *c = either(comm);
  struct mr *m = object_get(mh, MR, 1);
  if (!mh) return OK;
  if (!m) FAIL(INTERNAL, "deregMr: unknown mhandle");
  free(m);
  if (!c) FAIL(INTERNAL, "deregMr: unknown comm");
  pthread_mutex_lock(&c->lock);
  for (uint64_t s = c->head; s < c->tail; s++)
    for (int i = 0; i < c->g[s % DEPTH].n; i++)
      if (c->g[s % DEPTH].left && c->g[s % DEPTH].e[i].mh == mh) comm_fail(c, INTERNAL);
  for (unsigned i = c->mhead; i != c->mtail; i++)
    if (c->m[i % SENDS].mh == mh) comm_fail(c, INTERNAL);
  pthread_mutex_unlock(&c->lock);
  return OK;
}
static int mr_covers(void *mh, const char *data, size_t size) {
  struct mr *m = object_get(mh, MR, 0);
  return !size || (m && data >= m->base && data + size <= m->base + m->size);
}
/* The room that a receive has: what it says, as far as its registration goes. 0 of more: it begins outside. */
static size_t mr_room(void *mh, const char *data, size_t size) {
  struct mr *m = object_get(mh, MR, 0);
  if (!size || !m || data < m->base || data >= m->base + m->size) return 0;
  size_t left = (size_t)(m->base + m->size - data);
  return size < left ? size : left;
}
/* What is posted on a comm that has ended is taken: test tells. */
static int take_ended(void *comm, int send, void **req) {
  struct request *r = calloc(1, sizeof *r);
  r->comm = comm, r->send = send;
  return *req = object_new(REQUEST, r), OK;
}
static int good_isend(void *comm, void *data, size_t size, int tag, void *mh, void *ph, void **req) {
  struct comm *c = object_get(comm, SEND, 0);
  struct request *r;
  (void)ph;
  *req = NULL;
  if (!c) FAIL(INTERNAL, "isend: unknown sendComm");
  if (!mr_covers(mh, data, size)) FAIL(INTERNAL, "isend: memory not registered");
  pthread_mutex_lock(&c->lock);
  int rc = progress(c, 0), i = 0;
  struct group *g = &c->g[c->head % DEPTH];
  if (rc) rc = take_ended(comm, 1, req);
  if (*req || c->head == c->tail || c->mtail - c->mhead + c->nw >= SENDS) goto out;
  while (i < g->n && (g->e[i].taken || g->e[i].tag != tag)) i++;
  if (i == g->n) goto out;
  if (size > g->e[i].room) {
    struct frame no = {.type = REFUSE, .seq = g->seq, .entry = (uint32_t)i};
    queue_frame(c, &no), progress(c, 0);
    c->head++;
    warn(__func__, __LINE__, "NET/good : send larger than its receive: post a larger receive");
    rc = USAGE;
    goto out;
  }
  g->e[i].taken = 1;
  r = calloc(1, sizeof *r);
  *r = (struct request){.comm = comm, .n = 1, .send = 1, .size = {(int)size}};
  *req = object_new(REQUEST, r);
  c->m[c->mtail++ % SENDS] = (struct message){data, size, g->seq, i, mh, *req};
  if (!--g->left) c->head++;
  progress(c, 0);
out:
  pthread_mutex_unlock(&c->lock);
  return rc;
}
static int good_irecv(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhs, void **phs, void **req) {
  struct comm *c = object_get(comm, RECV, 0);
  (void)phs;
  *req = NULL;
  if (!c || n < 1 || n > GROUP) FAIL(INTERNAL, "irecv: unknown recvComm or bad n");
  for (int i = 0; i < n; i++)
    if (sizes[i] && !mr_room(mhs[i], data[i], sizes[i])) FAIL(INTERNAL, "irecv: memory not registered");
  pthread_mutex_lock(&c->lock);
  int rc = progress(c, 1);
  if (rc) rc = take_ended(comm, 0, req);
  if (*req || c->tail - c->head == DEPTH) goto out;
  struct group *g = &c->g[c->tail % DEPTH];
  struct frame f = {.type = READY, .seq = c->tail, .n = n};
  struct request *r = calloc(1, sizeof *r);
  *r = (struct request){.comm = comm, .n = n};
  memset(g, 0, sizeof *g);
  g->n = g->left = n, g->seq = c->tail;
  for (int i = 0; i < n; i++) {
    g->e[i] = (struct entry){.data = data[i], .room = mr_room(mhs[i], data[i], sizes[i]), .mh = mhs[i], .tag = tags ? tags[i] : 0};
    f.tag[i] = g->e[i].tag, f.size[i] = g->e[i].room;
  }
  g->request = *req = object_new(REQUEST, r);
  c->tail++;
  queue_frame(c, &f);
  if (!good_lazy) flush_frames(c);
out:
  pthread_mutex_unlock(&c->lock);
  return rc;
}
static int good_iflush(void *comm, int n, void **data, int *sizes, void **mhs, void **req) {
  (void)n, (void)data, (void)sizes, (void)mhs;
  if (req) *req = NULL;
  if (!object_get(comm, RECV, 0)) FAIL(INTERNAL, "iflush: unknown recvComm");
  return OK;
}
static int good_test(void *req, int *done, int *sizes) {
  struct request *r = object_get(req, REQUEST, 0);
  *done = 0;
  if (!r) FAIL(INTERNAL, "test: unknown request");
  struct comm *c = either(r->comm);
  if (!c) FAIL(INTERNAL, "test: the comm is closed");
  pthread_mutex_lock(&c->lock);
  if (!r->done) progress(c, !r->send);
  int rc = r->done ? r->rc : c->rc;
  if (r->done && !rc) {
    *done = 1;
    for (int i = 0; sizes && i < r->n; i++) sizes[i] = r->size[i];
    free(object_get(req, REQUEST, 1));
  }
  pthread_mutex_unlock(&c->lock);
  return rc;
}
/* Comms are shut, not freed: another thread may still be inside a call on them. NULL was never made. */
static int close_comm(void *comm, enum kind kind) {
  struct comm *c = object_get(comm, kind, 1);
  if (!comm) return OK;
  if (!c) FAIL(INTERNAL, "close: unknown comm");
  pthread_mutex_lock(&c->lock);
  c->rc = INTERNAL;
  close(c->fd), c->fd = -1;
  free(c->outq), c->outq = NULL, c->outn = 0;
  pthread_mutex_unlock(&c->lock);
  return OK;
}
static int good_closesend(void *comm) { return close_comm(comm, SEND); }
static int good_closerecv(void *comm) { return close_comm(comm, RECV); }
static int good_closelisten(void *listener) {
  int fd = (int)(intptr_t)object_get(listener, LISTEN, 1) - 1;
  if (!listener) return OK;
  if (fd < 0) FAIL(INTERNAL, "closeListen: unknown listenComm");
  return close(fd), OK;
}

/* What the tables call; a broken plugin's constructor replaces members. */
static struct core {
  int (*init)(void **, void *); int (*finalize)(void *); int (*devices)(int *); int (*props)(int, struct props *);
  int (*listen)(void *, int, void *, void **); int (*connect)(void *, int, void *, void **, int); int (*accept)(void *, void **, int);
  int (*regmr)(void *, void *, size_t, int, void **); int (*deregmr)(void *, void *);
  int (*isend)(void *, void *, size_t, int, void *, void *, void **); int (*irecv)(void *, int, void **, size_t *, int *, void **, void **, void **);
  int (*iflush)(void *, int, void **, int *, void **, void **); int (*test)(void *, int *, int *);
  int (*closesend)(void *), (*closerecv)(void *), (*closelisten)(void *);
} core = {good_init, good_finalize, good_devices, good_props, good_listen, good_connect, good_accept, good_regmr, good_deregmr,
          good_isend, good_irecv, good_iflush, good_test, good_closesend, good_closerecv, good_closelisten};
