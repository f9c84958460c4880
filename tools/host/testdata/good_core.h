/* The core of a small net plugin that keeps the contract: one TCP connection per comm over loopback, credits from
 * the receiver (READY), messages from the sender (DATA), an acknowledgement per group (ACK). A send is done when its
 * group was acknowledged, so a close after done loses nothing. good.c wraps it in tables; broken/ *.c spoil one act each.
 * Objects are named by (slot, generation), so a stale or foreign handle is an error and never a crash. */
#pragma once
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OK = 0, SYSTEM = 2, INTERNAL = 3, USAGE = 5, REMOTE = 6 };
enum { GROUP = 4, DEPTH = 32, SENDS = GROUP * DEPTH, OBJECTS = 16384 };
enum kind { FREE, LISTEN, CONNECTING, SEND, RECV, MR, REQUEST, FLUSH, CTX, COLL_LISTEN, COLL, COLL_MR, COLL_REQUEST };
enum { READY = 1, DATA, REFUSE, ACK };

struct frame { uint32_t type, entry; uint64_t seq, size[GROUP]; int32_t n, tag[GROUP]; };
struct mr { char *base; size_t size; void *comm; };

struct entry { char *data; size_t room, size; void *mh; int tag, taken, whole; };
struct group { struct entry e[GROUP]; int n, left, rc; uint64_t seq; void *request; };
struct message { const char *data; size_t size; uint64_t seq; int entry; void *mh, *request; };

struct comm {
  pthread_mutex_t lock;
  int fd, abi, rc; /* rc: what every later call returns once the connection failed */
  struct group g[DEPTH]; uint64_t head, tail; /* receiver: posted; sender: announced by READY */
  struct message m[SENDS]; unsigned mhead, mtail; size_t sent; /* sender's queue; sent counts the header too */
  struct message w[SENDS]; unsigned nw;                        /* sent, waiting for ACK */
  struct frame in, out; size_t got, body; char *outq; size_t outn;
};
struct request { void *comm; int done, rc, n, send; int size[GROUP]; };
struct object { uint32_t gen; enum kind kind; void *p; };
struct handle { uint32_t magic; uint16_t port, dev; uint64_t state; };

static void *good_log; /* ncclDebugLogger_t */
static int good_lazy; /* a defect: what irecv has to say waits for test */
static struct object objects[OBJECTS];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static void warn(const char *func, int line, const char *what) {
  void (*log)(int, unsigned long, const char *, int, const char *, ...) = (void (*)(int, unsigned long, const char *, int, const char *, ...))good_log;
  if (log) log(2, 16, func, line, "%s", what);
}
#define FAIL(rc, what) return warn(__func__, __LINE__, "NET/good : " what), (rc)

static void *object_new(enum kind kind, void *p) {
  static unsigned next;
  void *h = NULL;
  pthread_mutex_lock(&table_lock);
  for (int i = 0; i < OBJECTS && !h; i++) {
    unsigned s = next++ % OBJECTS;
    if (objects[s].kind != FREE) continue;
    objects[s].kind = kind, objects[s].p = p, objects[s].gen++;
    h = (void *)((uintptr_t)objects[s].gen << 24 | (uintptr_t)s << 4 | 8);
  }
  pthread_mutex_unlock(&table_lock);
  return h;
}
/* object_get returns what h names, if it is of that kind; take frees the name. */
static void *object_get(void *h, enum kind kind, int take) {
  void *p = NULL;
  unsigned s = (uintptr_t)h >> 4 & (OBJECTS - 1);
  pthread_mutex_lock(&table_lock);
  if (((uintptr_t)h & 0xf) == 8 && objects[s].kind == kind && objects[s].gen == (uint32_t)((uintptr_t)h >> 24)) {
    p = objects[s].p;
    if (take) objects[s].kind = FREE, objects[s].p = NULL;
  }
  pthread_mutex_unlock(&table_lock);
  return p;
}

static struct comm *comm_new(int fd, int abi) {
  struct comm *c = calloc(1, sizeof *c);
  pthread_mutex_init(&c->lock, NULL);
  c->fd = fd, c->abi = abi;
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return c;
}
static int comm_fail(struct comm *c, int rc) {
  if (!c->rc) c->rc = rc == REMOTE && c->abi < 6 ? SYSTEM : rc, warn(__func__, __LINE__, "NET/good : connection lost: is the peer alive?");
  return c->rc;
}

/* ---- both directions move whenever any call touches the comm, never blocking ---- */
static void queue_frame(struct comm *c, const struct frame *f) {
  c->outq = realloc(c->outq, c->outn + sizeof *f);
  memcpy(c->outq + c->outn, f, sizeof *f), c->outn += sizeof *f;
}
static int flush_frames(struct comm *c) {
  while (c->outn) {
    ssize_t n = send(c->fd, c->outq, c->outn, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EINTR ? 1 : (comm_fail(c, REMOTE), 0);
    memmove(c->outq, c->outq + n, c->outn - n), c->outn -= n;
  }
  return 1;
}
static struct request *request_of(void *h) { return object_get(h, REQUEST, 0); }

static void sender_frame(struct comm *c, struct frame *f) {
  if (f->type == READY) {
    struct group *g = &c->g[c->tail++ % DEPTH];
    memset(g, 0, sizeof *g);
    g->n = g->left = f->n, g->seq = f->seq;
    for (int i = 0; i < f->n; i++) g->e[i].tag = f->tag[i], g->e[i].room = f->size[i];
  } else if (f->type == ACK) {
    for (unsigned i = 0; i < c->nw;) {
      struct request *r = request_of(c->w[i].request);
      if (c->w[i].seq != f->seq) { i++; continue; }
      if (r) r->done = 1;
      c->w[i] = c->w[--c->nw];
    }
  }
}
static void sender_push(struct comm *c) {
  while (c->mhead != c->mtail) {
    struct message *m = &c->m[c->mhead % SENDS];
    struct frame f = {.type = DATA, .entry = m->entry, .seq = m->seq};
    f.size[0] = m->size;
    size_t h = c->sent < sizeof f ? sizeof f - c->sent : 0, d = c->sent > sizeof f ? c->sent - sizeof f : 0;
    struct iovec v[2] = {{(char *)&f + sizeof f - h, h}, {(char *)m->data + d, m->size - d}};
    struct msghdr x = {.msg_iov = v + !h, .msg_iovlen = 2 - !h};
    ssize_t n = sendmsg(c->fd, &x, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) { comm_fail(c, REMOTE); return; }
    c->sent += n;
    if (c->sent < sizeof f + m->size) return;
    c->w[c->nw++] = *m, c->mhead++, c->sent = 0;
  }
}
static struct group *group_of(struct comm *c, uint64_t seq) {
  struct group *g = &c->g[seq % DEPTH];
  return seq >= c->head && seq < c->tail && g->seq == seq ? g : NULL;
}
static void group_step(struct comm *c, struct group *g, int rc) {
  struct request *r = request_of(g->request);
  struct frame ack = {.type = ACK, .seq = g->seq};
  if (rc) g->rc = rc;
  if (rc ? 0 : --g->left) return;
  if (r) {
    for (int i = 0; i < g->n; i++) r->size[i] = (int)g->e[i].size;
    r->rc = g->rc, r->done = 1;
  }
  if (!rc) queue_frame(c, &ack);
  g->left = 0;
  while (c->head < c->tail && !c->g[c->head % DEPTH].left) c->head++;
}
static void pull(struct comm *c, int receiver) {
  for (;;) {
    int whole = c->got == sizeof c->in;
    struct group *g = whole ? group_of(c, c->in.seq) : NULL;
    if (whole && !g) { comm_fail(c, INTERNAL); return; }
    char *to = whole ? g->e[c->in.entry].data + c->body : (char *)&c->in + c->got;
    size_t want = whole ? c->in.size[0] - c->body : sizeof c->in - c->got;
    ssize_t n = want ? recv(c->fd, to, want, MSG_DONTWAIT) : 0;
    if (n < 0 && errno == EAGAIN) return;
    if (want && n <= 0) { comm_fail(c, REMOTE); return; }
    if (whole) c->body += n; else c->got += n;
    if (c->got < sizeof c->in) continue;
    if (!receiver) { sender_frame(c, &c->in), c->got = 0; continue; }
    if (!(g = group_of(c, c->in.seq)) || c->in.entry >= (uint32_t)g->n) { comm_fail(c, INTERNAL); return; }
    if (c->in.type == REFUSE) { group_step(c, g, USAGE), c->got = 0; continue; }
    if (c->in.size[0] > g->e[c->in.entry].room) { comm_fail(c, USAGE); return; }
    if (c->body < c->in.size[0]) continue;
    g->e[c->in.entry].size = c->body, g->e[c->in.entry].whole = 1;
    c->got = c->body = 0;
    group_step(c, g, 0);
  }
}
static int progress(struct comm *c, int receiver) {
  if (!c->rc && !c->sent) flush_frames(c);
  if (!c->rc) pull(c, receiver);
  if (!c->rc && !receiver && !c->outn) sender_push(c);
  if (!c->rc && !c->sent) flush_frames(c);
  return c->rc;
}
