/* Faults on command. Lines come from WEFT_SIMVERBS_FAULTS (separated by ';') when the library is set up, and at any
 * time through a unix stream socket, STATE/ctl/PID, and WEFT_SIMVERBS_CTL if that is set. Each line is answered "ok"
 * or "error: why". What concerns links, devices and the wire holds for every process of the world; `fail`, `slow`
 * and `break` for the process asked. */
#include "sim.h"

#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

uint32_t sv_armed;
static struct { int64_t skip, count; int err; uint32_t usec; } plan[FN_COUNT];
static uint32_t failed; /* calls so far */
static const char* const functions[] = {
#define F(name) #name,
    SV_FUNCTIONS(F)
#undef F
};

int sv_fail_slow(enum sv_function f) {
  if (get(plan[f].usec)) usleep(get(plan[f].usec));
  if (!get(plan[f].count) || __atomic_fetch_sub(&plan[f].skip, 1, __ATOMIC_ACQ_REL) > 0) return 0;
  if (__atomic_fetch_sub(&plan[f].count, 1, __ATOMIC_ACQ_REL) <= 0) { put(plan[f].count, 0); return 0; }
  add(failed, 1);
  return plan[f].err;
}

void sv_hot(void) {
  uint32_t hot = 0;
  sv_arena_lock(); /* one that looked earlier must not store later */
  for (int i = 0; i < MAX_DEV * MAX_PORT; i++) {
    struct port* p = &sv_arena->ports[i];
    hot |= p->down || p->hole || p->delay || p->rate[0] || p->rate[1] || p->most[0] || p->most[1];
  }
  for (int i = 0; i < MAX_DEV; i++) hot |= sv_arena->devs[i].reorder || get(sv_arena->devs[i].error_in) > 0;
  put(sv_arena->hot, hot);
  sv_arena_unlock();
}

/* "sim0", "sim0:2", with "node/" before it if several nodes have one of that name. */
static int find(const char* text, int* port) {
  char name[96];
  snprintf(name, sizeof name, "%s", text);
  char *colon = strchr(name, ':'), *slash = strchr(name, '/'), *dev = slash ? slash + 1 : name;
  *port = colon ? atoi(colon + 1) : 1;
  if (colon) *colon = 0;
  if (slash) *slash = 0;
  for (int i = 0; i < sv_conf.ndev; i++) {
    struct devconf* d = &sv_conf.dev[i];
    int here = slash ? !strcmp(d->node, name) : d->visible;
    if (here && !strcmp(d->name, dev) && *port >= 1 && *port <= d->ports) return i;
  }
  return -1;
}

/* A status or event by the tail of its name, REM_ACCESS_ERR, PORT_ERR; an errno; or its number. */
static int named(const char* text, int n, const char* (*name)(int)) {
  for (int i = 0; i < n; i++)
    if (name(i) && !strcasecmp(text, name(i))) return i;
  return text[0] >= '0' && text[0] <= '9' ? atoi(text) : -1;
}

static const char* fail_line(char* w[], int n) {
  for (size_t i = 0; n >= 3 && i < FN_COUNT; i++) {
    if (strcmp(w[1] + (strncmp(w[1], "ibv_", 4) ? 0 : 4), functions[i])) continue;
    put(sv_armed, 1);
    if (!strcmp(w[0], "slow")) { put(plan[i].usec, (uint32_t)atoi(w[2])); return NULL; }
    if ((plan[i].err = n > 3 ? named(w[3], 134, strerrorname_np) : ENOMEM) <= 0) return "an errno is expected";
    put(plan[i].skip, atoll(w[2]) - 1);
    put(plan[i].count, n > 4 ? atoll(w[4]) : 1);
    return NULL;
  }
  return "fail FUNCTION N [ERRNO [COUNT]], slow FUNCTION USEC; FUNCTION is not one that can fail";
}

/* A queue pair of this process to ERR, without an event. */
static const char* break_line(uint32_t qpn) {
  sv_lock(&sv_objects_lock);
  struct vqp* q = get(sv_qps[qpn % MAX_QP]);
  int known = q && get(q->s->qpn) == qpn;
  if (known) {
    sv_lock(&q->lock);
    sv_qp_error(q);
    sv_unlock(&q->lock);
  }
  sv_unlock(&sv_objects_lock);
  return known ? NULL : "no such queue pair in this process";
}

static const char* device_line(char* w[], int n, int dev, struct port* p, uint32_t port) {
  struct shdev* d = &sv_arena->devs[dev];
  if (!strcmp(w[0], "link") && n == 3) {
    uint32_t down = !strcmp(w[2], "down"), was = __atomic_exchange_n(&p->down, down, __ATOMIC_ACQ_REL);
    if (was != down) sv_broadcast(dev, down ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE, port);
  } else if (!strcmp(w[0], "blackhole") && n == 3) {
    put(p->hole, !strcmp(w[2], "off") ? 0u : !strcmp(w[2], "tx") ? 1u : !strcmp(w[2], "rx") ? 2u : 3u);
  } else if (!strcmp(w[0], "limit") && (n == 3 || n == 4)) {
    for (int rx = 0; rx < 2; rx++)
      if (n == 3 || !strcmp(w[3], rx ? "rx" : "tx")) put(p->most[rx], (uint32_t)atoi(w[2]));
  } else if (!strcmp(w[0], "delay") && n == 3) {
    put(p->delay, (uint64_t)(atof(w[2]) * 1e3));
  } else if (!strcmp(w[0], "rate") && (n == 3 || n == 4)) {
    for (int rx = 0; rx < 2; rx++)
      if (n == 3 || !strcmp(w[3], rx ? "rx" : "tx")) put(p->rate[rx], (uint64_t)(atof(w[2]) * 1e9));
  } else if (!strcmp(w[0], "reorder") && n == 3) {
    put(d->reorder, !strcmp(w[2], "on"));
  } else if (!strcmp(w[0], "error") && n >= 4) {
    int status = named(w[3], 24, sv_status_name);
    if (status <= 0) return "a completion status is expected";
    d->error_status = (uint32_t)status;
    d->error_placed = n > 4 && !strcmp(w[4], "placed");
    d->error_qpn = n > 5 ? (uint32_t)atoi(w[5]) : 0;
    put(d->error_in, atoll(w[2]));
  } else if (!strcmp(w[0], "break") && n == 3) {
    return break_line((uint32_t)atoi(w[2]));
  } else if (!strcmp(w[0], "event") && n >= 3) {
    int type = named(w[2], 21, sv_event_name);
    if (type < 0) return "an event is expected";
    sv_broadcast(dev, type, n > 3 ? (uint32_t)atoi(w[3]) : port);
  } else if (!strcmp(w[0], "gid") && n == 4) {
    struct gid g = {0};
    int i = atoi(w[2]);
    if (i < 0 || i >= MAX_GID || (strcmp(w[3], "none") && sv_parse_gid(w[3], &g)))
      return "gid DEVICE INDEX ADDRESS/PREFIX or none";
    p->gids[i] = g;
    sv_broadcast(dev, IBV_EVENT_GID_CHANGE, port);
  } else {
    return "link D up|down, blackhole D tx|rx|both|off, limit D BYTES [tx|rx], delay D USEC, "
      "rate D GB/s [tx|rx], reorder D on|off, error D N STATUS [placed [QPN]], break D QPN, event D TYPE [ARG], "
      "gid D INDEX GID, "
      "fail FUNCTION N [ERRNO [COUNT]], slow FUNCTION USEC, stop PID";
  }
  sv_hot();
  return NULL;
}

/* What this process has, and how many of its calls were made to fail. */
static void tally(char* answer, size_t size) {
  uint32_t mrs = 0, cqs = 0, qps = 0;
  for (int i = 0; i < MAX_MR; i++) mrs += get(sv_arena->mrs[i].proc) == sv_me;
  for (int i = 0; i < MAX_CQ; i++) cqs += get(sv_arena->cqs[i].proc) == sv_me;
  for (int i = 0; i < MAX_QP; i++) qps += get(sv_arena->qps[i].proc) == sv_me;
  snprintf(answer, size, "ok mrs %u cqs %u qps %u failed %u\n", mrs, cqs, qps, get(failed));
}

/* The queue pairs of this process on a device: number, the peer's, state, receive CQ, requests posted and done. */
static void list(int dev, char* answer, size_t size) {
  size_t at = (size_t)snprintf(answer, size, "ok");
  sv_lock(&sv_objects_lock);
  for (uint32_t i = 0; i < MAX_QP && at + 64 < size; i++) {
    struct vqp* q = get(sv_qps[i]);
    if (!q || q->ctx->dev->index != dev) continue;
    sv_lock(&q->lock);
    at += (size_t)snprintf(answer + at, size - at, " %u-%u/%u/%u/%u/%u", q->s->qpn, q->s->dest, get(q->s->state),
      q->s->rcq, q->tail, get(q->s->sq_head));
    sv_unlock(&q->lock);
  }
  sv_unlock(&sv_objects_lock);
  snprintf(answer + at, size - at, "\n");
}

/* Whether each thread of a process has stopped, or ended. */
static int has_stopped(pid_t pid) {
  char path[320], stat[512];
  snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
  DIR* tasks = opendir(path);
  int all = 1;
  for (struct dirent* t; tasks && all && (t = readdir(tasks));) {
    snprintf(path, sizeof path, "/proc/%d/task/%s/stat", (int)pid, t->d_name);
    FILE* f = t->d_name[0] == '.' ? NULL : fopen(path, "re");
    if (!f) continue;
    size_t n = fread(stat, 1, sizeof stat - 1, f);
    stat[n] = 0;
    const char* state = strrchr(stat, ')'); /* the name before it may have any character */
    all = !state || strchr("TtXZ", state[2]);
    fclose(f);
  }
  if (tasks) closedir(tasks);
  return all;
}

/* What SIGSTOP does, but not while the process holds the arena's lock: all others would wait for it, as for no NIC. */
static const char* stop_line(pid_t pid) {
  const char* why = "no other process";
  if (pid <= 1 || pid == getpid()) return why;
  sv_arena_lock();
  if (!kill(pid, SIGSTOP)) {
    for (int i = 0; i < 5000 && !has_stopped(pid); i++) usleep(1000);
    why = has_stopped(pid) ? NULL : "it does not stop within 5 s";
  }
  sv_arena_unlock();
  return why;
}

static void obey(char* line, char* answer, size_t size) {
  char *w[8], *save = NULL;
  int n = 0, port = 1;
  for (char* t = strtok_r(line, " \t\r\n", &save); t && n < 8; t = strtok_r(NULL, " \t\r\n", &save)) w[n++] = t;
  const char* why = "empty";
  if (n == 1 && !strcmp(w[0], "count")) { tally(answer, size); return; }
  if (n > 1 && (!strcmp(w[0], "fail") || !strcmp(w[0], "slow"))) {
    why = fail_line(w, n);
  } else if (n == 2 && !strcmp(w[0], "stop")) {
    why = stop_line(atoi(w[1]));
  } else if (n > 1) {
    int dev = find(w[1], &port);
    if (dev >= 0 && n == 2 && !strcmp(w[0], "list")) { list(dev, answer, size); return; }
    why = dev < 0 ? "no such device and port"
      : device_line(w, n, dev, &sv_arena->ports[dev * MAX_PORT + port - 1], (uint32_t)port);
  }
  snprintf(answer, size, why ? "error: %s\n" : "ok\n", why);
}

static void* serve(void* arg) {
  int at = (int)(intptr_t)arg;
  for (;;) {
    char line[256], answer[4096];
    int c = accept4(at, NULL, NULL, SOCK_CLOEXEC);
    FILE* f = c < 0 ? NULL : fdopen(c, "r+");
    while (f && fgets(line, sizeof line, f)) {
      obey(line, answer, sizeof answer);
      if (send(c, answer, strlen(answer), MSG_NOSIGNAL) < 0) break;
    }
    if (f) fclose(f);
    else if (c < 0 && errno != EINTR && errno != ECONNABORTED) usleep(10000);
  }
  return NULL;
}

static void listen_at(const char* path) {
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
  unlink(path);
  if (s < 0 || bind(s, (struct sockaddr*)&a, sizeof a) || listen(s, 8))
    { sv_log("listen at %s: %s", path, strerror(errno)); return; }
  sv_thread(serve, (void*)(intptr_t)s);
}

static char own_socket[256];
__attribute__((destructor)) static void leave(void) { if (own_socket[0]) unlink(own_socket); }

void sv_control_start(void) {
  const char *faults = getenv("WEFT_SIMVERBS_FAULTS"), *at = getenv("WEFT_SIMVERBS_CTL");
  char text[2048], answer[512], *save = NULL;
  snprintf(text, sizeof text, "%s", faults ? faults : "");
  for (char* line = strtok_r(text, ";\n", &save); line; line = strtok_r(NULL, ";\n", &save)) {
    obey(line, answer, sizeof answer);
    if (strcmp(answer, "ok\n")) sv_log("WEFT_SIMVERBS_FAULTS=%s: %s", faults, answer);
  }
  snprintf(own_socket, sizeof own_socket, "%s/ctl", sv_conf.dir);
  mkdir(own_socket, 0700);
  snprintf(own_socket, sizeof own_socket, "%s/ctl/%d", sv_conf.dir, (int)getpid());
  listen_at(own_socket);
  if (at && *at) listen_at(at);
}
