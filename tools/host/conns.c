/* Many connections: storms, their times, data on each of them; and plain TCP alike. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host.h"

enum { HANDLE = 128 };

/* Plain TCP: sockets with the options that are asked for. */
struct plain {
  struct sockaddr_in to;
  int nodelay, sndbuf, rcvbuf;
};

static struct plain plain_of(const struct req* q) {
  struct plain p = {.to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)num(q, "port", 0))},
                    .nodelay = (int)num(q, "nodelay", 1),
                    .sndbuf = (int)num(q, "sndbuf", 0),
                    .rcvbuf = (int)num(q, "rcvbuf", 0)};
  inet_pton(AF_INET, str(q, "addr", "127.0.0.1"), &p.to.sin_addr);
  return p;
}

static void options(const struct plain* p, int fd) {
  if (p->nodelay) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &p->nodelay, sizeof p->nodelay);
  if (p->sndbuf) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &p->sndbuf, sizeof p->sndbuf);
  if (p->rcvbuf) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &p->rcvbuf, sizeof p->rcvbuf);
}

static int plain_connect(const struct plain* p) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0) options(p, fd);
  if (fd >= 0 && connect(fd, (const struct sockaddr*)&p->to, sizeof p->to) == 0) {
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
  }
  if (fd >= 0) close(fd);
  return -1;
}

/* One side of a storm, taken from the request once: what a poll looks up is not the plugin's cost. */
struct side {
  const struct table* t;
  void* ctx;
  int dev, fd;
  char* handles;
  void** listens;
  struct plain plain;
};

static struct side side_of(const struct req* q, const struct table* t) {
  return (struct side){.t = t,
                       .ctx = ptr(q, "ctx"),
                       .dev = (int)num(q, "dev", 0),
                       .fd = (int)num(q, "fd", -1),
                       .handles = ptr(q, "handles"),
                       .listens = ptr(q, "listens"),
                       .plain = plain_of(q)};
}

/* Makes n connections, at most inflight at a time, and times each from its first call. */
static void storm(struct req* q, const struct side* s, int (*once)(const struct side*, int64_t i, void** comm),
                  void** comms) {
  const int64_t n = num(q, "n", 1);
  int64_t inflight = num(q, "inflight", n), next = 0, done = 0, active = 0, calls = 0;
  if (inflight > n) inflight = n;
  int64_t *which = calloc((size_t)n + 1, sizeof *which), *ns = calloc((size_t)n + 1, sizeof *ns);
  if (!which || !ns) abort();
  struct clock c;
  clock_start(&c, q);
  while (done < n) {
    while (active < inflight && next < n) {
      comms[next] = NULL;
      ns[next] = now_ns();
      which[active++] = next++;
    }
    const int64_t before = done;
    for (int64_t k = 0; k < active; k++, calls++) {
      const int64_t i = which[k];
      const int rc = LOOP("storm", once(s, i, &comms[i]));
      if (rc != 0) {
        loop_failed(q, "connect or accept", rc);
        out_num(q, "at", i);
        goto end;
      }
      if (!comms[i]) continue;
      ns[i] = now_ns() - ns[i];
      done++;
      which[k--] = which[--active];
    }
    if (done == before) sched_yield();
    if (clock_late(&c, q)) goto end;
  }
  clock_cpu(&c, q);
  out_num(q, "calls", calls);
  percentiles(q, ns, (int)n);
end:
  free(which);
  free(ns);
}

static int one_connect(const struct side* s, int64_t i, void** comm) {
  const int class = -1;
  void* dc = NULL;
  return s->t->connect(s->t, s->ctx, s->dev, s->handles + i * HANDLE, comm, &dc, &class);
}

static int one_accept(const struct side* s, int64_t i, void** comm) {
  void* dc = NULL;
  return s->t->accept(s->t, s->listens[i], comm, &dc);
}

static void c_connect(struct req* q) {
  const struct table* t = table_of(q, "net");
  const struct side s = side_of(q, t);
  if (t) storm(q, &s, one_connect, ptr(q, "comms"));
}

static void c_accept(struct req* q) {
  const struct table* t = table_of(q, "net");
  const struct side s = side_of(q, t);
  if (t) storm(q, &s, one_accept, ptr(q, "comms"));
}

/* Registers memory on every comm, moves a message over each, checks it, deregisters. */
static void c_move(struct req* q) {
  const struct table* t = table_of(q, "net");
  if (!t) return;
  const bool sender = strcmp(str(q, "role", "send"), "send") == 0;
  void** comms = ptr(q, "comms");
  const int64_t n = num(q, "n", 1), size = num(q, "size", 64), seed = num(q, "seed", 1);
  char* buf = aligned_alloc(64, (size_t)(n * size + 63) & ~(size_t)63);
  void **mh = calloc((size_t)n, sizeof *mh), **reqs = calloc((size_t)n, sizeof *reqs);
  int64_t posted = 0, done = 0, bad = 0;
  int rc = 0;
  struct clock c;
  bool* over = calloc((size_t)n, sizeof *over);
  if (!buf || !mh || !reqs || !over) abort();
  for (int64_t i = 0; rc == 0 && i < n; i++) {
    if (sender) pattern_fill(buf + i * size, (size_t)size, (uint64_t)(seed + i));
    rc = t->regMr(t, comms[i], buf + i * size, size, NCCL_PTR_HOST, &mh[i]);
  }
  if (rc != 0) loop_failed(q, "regMr", rc);
  clock_start(&c, q);
  while (rc == 0 && done < n && !clock_late(&c, q)) {
    const int64_t before = posted + done;
    for (int64_t i = 0; rc == 0 && i < n; i++) {
      void *data = buf + i * size, *ph = NULL;
      int64_t bytes = size;
      int tag = 1, ok = 0, got = 0;
      if (over[i]) continue;
      if (!reqs[i]) {
        rc = sender ? LOOP("isend", t->isend(t, comms[i], data, size, tag, mh[i], NULL, &reqs[i]))
                    : LOOP("irecv", t->irecv(t, comms[i], 1, &data, &bytes, &tag, &mh[i], &ph, &reqs[i]));
        posted += reqs[i] != NULL;
        continue;
      }
      rc = LOOP("test\0", net_test(t, reqs[i], &ok, &got));
      if (!ok) continue;
      over[i] = true;
      done++;
      if (!sender && (got != size || pattern_check(data, (size_t)size, (uint64_t)(seed + i), NULL))) bad++;
    }
    if (posted + done == before) sched_yield();
  }
  if (rc != 0 && !q->code && !q->out.len) loop_failed(q, "isend, irecv or test", rc);
  if (rc == 0 && !q->code) {
    clock_cpu(&c, q);
    out_num(q, "bad", bad);
  }
  for (int64_t i = 0; i < n; i++)
    if (mh[i]) ((int (*)(void*, void*))slot_fn(t, S_deregMr))(comms[i], mh[i]);
  free(over);
  free(reqs);
  free(mh);
  free(buf);
}

static void c_plain_listen(struct req* q) {
  const struct plain p = plain_of(q);
  struct sockaddr_in a = p.to;
  socklen_t len = sizeof a;
  const int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  options(&p, fd);
  if (bind(fd, (struct sockaddr*)&a, len) != 0 || listen(fd, 4096) != 0 ||
      getsockname(fd, (struct sockaddr*)&a, &len) != 0)
    return fail(q, "usage", "listen: %s", strerror(errno));
  out_num(q, "fd", fd);
  out_num(q, "port", ntohs(a.sin_port));
}

static void c_plain_connect(struct req* q) {
  const struct plain p = plain_of(q);
  const int fd = plain_connect(&p);
  if (fd < 0) return fail(q, "usage", "connect: %s", strerror(errno));
  out_num(q, "fd", fd);
}

static void c_plain_accept(struct req* q) {
  const struct plain p = plain_of(q);
  struct pollfd l = {.fd = (int)num(q, "fd", -1), .events = POLLIN};
  poll(&l, 1, (int)num(q, "limit", 30000));
  const int fd = accept4(l.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return fail(q, "usage", "accept: %s", strerror(errno));
  options(&p, fd);
  out_num(q, "fd", fd);
}

static void c_plain_close(struct req* q) { close((int)num(q, "fd", -1)); }

static int one_plain_connect(const struct side* s, int64_t i, void** comm) {
  (void)i;
  const int fd = plain_connect(&s->plain);
  *comm = (void*)(intptr_t)fd;
  return fd < 0 ? (int)ncclSystemError : 0;
}

static int one_plain_accept(const struct side* s, int64_t i, void** comm) {
  (void)i;
  const int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  *comm = fd < 0 ? NULL : (void*)(intptr_t)fd;
  return fd < 0 && errno != EAGAIN ? (int)ncclSystemError : 0;
}

/* n bare connections, made and closed: what a connect costs without a plugin. */
static void c_plain_storm(struct req* q) {
  const int64_t n = num(q, "n", 1);
  void** fds = calloc((size_t)n, sizeof *fds);
  if (!fds) abort();
  const bool connects = strcmp(str(q, "role", "connect"), "connect") == 0;
  const struct side s = side_of(q, NULL);
  storm(q, &s, connects ? one_plain_connect : one_plain_accept, fds);
  for (int64_t i = 0; i < n; i++)
    if (fds[i]) close((int)(intptr_t)fds[i]);
  free(fds);
}

const struct command conn_commands[] = {
    {"conn.connect", c_connect},     {"conn.accept", c_accept},
    {"conn.move", c_move},           {"plain.listen", c_plain_listen},
    {"plain.connect", c_plain_connect}, {"plain.accept", c_plain_accept},
    {"plain.close", c_plain_close},  {"plain.storm", c_plain_storm},
    {NULL, NULL}};
