/* Libraries, bindings, and every slot of a bound table as a command. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

struct binding {
  struct binding* next;
  char as[32], family[8];
  struct table table;
};
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER; /* protects bindings */
static struct binding* bindings;

static void c_load(struct req* q) {
  const char* path = str(q, "path", "");
  void* lib;
  if (strcmp(path, "self") == 0) path = NULL; /* a plugin linked into the host, for the race detector */
  PLUGIN(q, "dlopen", lib = dlopen(path, (int)num(q, "flags", RTLD_NOW | RTLD_LOCAL)));
  if (!lib) fail(q, "nolib", "%s", dlerror());
  if (lib) out_ptr(q, "lib", lib);
}

static void c_unload(struct req* q) {
  int rc;
  PLUGIN(q, "dlclose", rc = dlclose(ptr(q, "lib")));
  out_num(q, "rc", rc);
}

static void c_sym(struct req* q) { out_ptr(q, "addr", dlsym(ptr(q, "lib"), str(q, "name", ""))); }

static struct binding* named(const char* as) {
  struct binding* b = bindings;
  while (b && strcmp(b->as, as) != 0) b = b->next;
  return b;
}

static void c_bind(struct req* q) {
  const char *family = str(q, "family", "net"), *as = str(q, "as", family);
  const int v = (int)num(q, "version", 0);
  const struct table* known = table_known(family, v);
  if (!known) {
    fail(q, "usage", "no table %s v%d", family, v);
    return;
  }
  char symbol[64];
  snprintf(symbol, sizeof symbol, "%s_v%d", family_symbol(family), v);
  const char* base = dlsym(ptr(q, "lib"), symbol);
  if (!base) {
    fail(q, "nolib", "the library has no %s", symbol);
    return;
  }
  pthread_mutex_lock(&mu);
  struct view* view = known->view;
  Dl_info other;
  if (view && view->real && view->real != base && dladdr(view->real, &other)) {
    pthread_mutex_unlock(&mu);
    fail(q, "usage", "%s of %s is bound: of a version this new the host calls one library's at a time", symbol,
      other.dli_fname);
    return;
  }
  if (view) view->see(base);
  struct binding* b = named(as);
  if (!b) {
    b = calloc(1, sizeof *b);
    if (!b) abort();
    snprintf(b->as, sizeof b->as, "%s", as);
    b->next = bindings;
    bindings = b;
  }
  snprintf(b->family, sizeof b->family, "%s", family);
  b->table = *known;
  b->table.base = view ? view->seen : base;
  pthread_mutex_unlock(&mu);
  out_ptr(q, "table", base);
  out_str(q, "name", *(const char* const*)base);
  if (view) out_str(q, "news", view->news);
  out_num(q, "devs", known->devs);
  text_add(&q->out, " slots=");
  const char* comma = "";
  for (int s = 1; s < S_COUNT; s++) {
    if (!slot_fn(&b->table, (enum slot)s)) continue;
    text_add(&q->out, "%s%s", comma, slot_names[s]);
    comma = ",";
  }
}

const struct table* table_of(struct req* q, const char* family) {
  const char* as = str(q, "on", family);
  pthread_mutex_lock(&mu);
  const struct binding* b = named(as);
  pthread_mutex_unlock(&mu);
  if (b && strcmp(b->family, family) == 0) return &b->table;
  fail(q, "nolib", "no %s table is bound as %s", family, as);
  return NULL;
}

static void io_read(const struct req* q, struct io* io) {
  int64_t v[MAX_GROUP] = {0};
  memset(io, 0, sizeof *io);
  int k = list(q, "data", v, MAX_GROUP);
  for (int i = 0; i < k; i++) io->data[i] = (void*)v[i];
  k = list(q, "mh", v, MAX_GROUP);
  for (int i = 0; i < k; i++) io->mh[i] = (void*)v[i];
  k = list(q, "ph", v, MAX_GROUP);
  for (int i = 0; i < k; i++) io->ph[i] = (void*)v[i];
  k = list(q, arg(q, "devs") ? "devs" : "tag", v, MAX_GROUP);
  for (int i = 0; i < k; i++) io->tags[i] = (int)v[i];
  k = list(q, "size", io->sizes, MAX_GROUP);
  for (int i = 0; i < k; i++) io->narrow[i] = (int)io->sizes[i];
  io->n = (int)num(q, "n", 1); /* as asked, even when it is wrong */
}

/* What a slot writes, and the key of its entry value. */
static const struct {
  const char *out, *entry;
} writes[S_COUNT] = {
    [S_init] = {"ctx", "ctx"},       [S_listen] = {"comm", "comm"}, [S_connect] = {"comm", "comm"},
    [S_accept] = {"comm", "comm"},   [S_regMr] = {"mh", NULL},      [S_regMrDmaBuf] = {"mh", NULL},
    [S_isend] = {"req", "req"},      [S_irecv] = {"req", "req"},    [S_iflush] = {"req", "req"},
    [S_flush] = {"req", NULL},       [S_getDeviceMr] = {"dptr", NULL},
    [S_iallreduce] = {"req", "req"}, [S_iallgather] = {"req", "req"}, [S_ireducescatter] = {"req", "req"},
    [S_startEvent] = {"handle", NULL},
};

/* The key of the entry value of the int that a slot writes. */
static const char* const entries[S_COUNT] = {
    [S_test] = "done", [S_makeVDevice] = "d", [S_devices] = "n", [S_init] = "mask"};

static int collective(const struct table* t, enum slot s, const struct req* q, struct io* io) {
  struct collective c = {.slot = s, .comm = ptr(q, "comm"), .send = ptr(q, "send"), .recv = ptr(q, "recv"),
                         .smh = ptr(q, "smh"), .rmh = ptr(q, "rmh"), .count = num(q, "count", 0),
                         .per_rank = num(q, "perRank", 0), .offset = num(q, "offset", 0), .bytes = num(q, "bytes", 0),
                         .type = (int)num(q, "type", ncclFloat32), .op = (int)num(q, "op", ncclSum), .n = io->n};
  for (int i = 0; i < MAX_GROUP; i++) c.parts[i] = (struct part){io->mh[i], io->data[i], io->sizes[i]};
  return t->collective(t, &c, &io->out);
}

static int call(const struct table* t, enum slot s, struct req* q, struct io* io) {
  void* const fn = slot_fn(t, s);
  void* const comm = ptr(q, "comm");
  const int class = (int)num(q, "class", -1);
  void** devcomm = num(q, "devcomm", 1) ? &io->dev : NULL;
  if (num(q, "devcomm", 1) > 1) io->dev = ptr(q, "devcomm");
  if (strncmp(q->cmd, "net.", 4) == 0) switch (s) {
      case S_listen:
        return t->listen(t, ptr(q, "ctx"), (int)num(q, "dev", 0), ptr(q, "handle"), &io->out);
      case S_connect:
        return t->connect(t, ptr(q, "ctx"), (int)num(q, "dev", 0), ptr(q, "handle"), &io->out,
                          devcomm, num(q, "config", 1) ? &class : NULL);
      case S_accept:
        return t->accept(t, ptr(q, "listen"), &io->out, devcomm);
      case S_isend:
        return t->isend(t, comm, io->data[0], io->sizes[0], io->tags[0], io->mh[0], io->ph[0], &io->out);
      case S_irecv:
        return t->irecv(t, comm, io->n, io->data, io->sizes, io->tags, io->mh, io->ph, &io->out);
      default:
        break;
    }
  switch (s) { /* one signature in all versions and families */
    case S_iallreduce:
    case S_iallgather:
    case S_ireducescatter:
      return collective(t, s, q, io);
    case S_regMr:
      return t->regMr(t, comm, io->data[0], io->sizes[0], (int)num(q, "type", 1), &io->out);
    case S_devices:
      return ((int (*)(int*))fn)(&io->i);
    case S_deregMr:
      return ((int (*)(void*, void*))fn)(comm, io->mh[0]);
    case S_test:
      return net_test(t, ptr(q, "req"), &io->i, num(q, "sizes", 1) ? io->narrow : NULL);
    case S_closeSend:
    case S_closeRecv:
    case S_closeListen:
    case S_closeColl:
      return ((int (*)(void*))fn)(comm);
    default:
      return t->call(t, s, q, io);
  }
}

/* Whether the slot must be called again for its composite form. */
static bool again(enum slot s, const struct req* q, const struct io* io) {
  if (s == S_test) return num(q, "poll", 0) && !io->i;
  return num(q, "poll", 0) && writes[s].out && !io->out;
}

bool slot_command(struct req* q) {
  const char* dot = strchr(q->cmd, '.');
  if (!dot) return false;
  char family[8];
  snprintf(family, sizeof family, "%.*s", (int)(dot - q->cmd), q->cmd);
  const char* name = strcmp(dot + 1, "props") == 0 ? "getProperties" : dot + 1;
  enum slot s = S_COUNT - 1;
  while (s && strcmp(slot_names[s], name) != 0) s--;
  if (!s || !family_symbol(family)) return false;
  const struct table* t = table_of(q, family);
  if (!t) return true;
  if (!t->off[s] && s == S_getProperties) s = S_pciPath;
  if (!t->off[s] && s == S_iflush) s = S_flush;
  if (!t->off[s] && s == S_finalize) s = S_destroy;
  if (!slot_fn(t, s) && !(t->off[s] && num(q, "force", 0))) {
    fail(q, "noslot", "%s v%d has no %s", family, t->version, slot_names[s]);
    return true;
  }
  struct io io;
  struct clock c;
  clock_start(&c, q);
  int rc;
  int64_t tries = 0;
  do {
    io_read(q, &io);
    io.i = (int)num(q, entries[s] ? entries[s] : "", s == S_init ? 0 : -1);
    if (s == S_test) memset(io.narrow, 0, sizeof io.narrow);
    if (writes[s].entry) io.out = ptr(q, writes[s].entry);
    PLUGIN(q, slot_names[s], rc = call(t, s, q, &io));
    if (rc == 0 && again(s, q, &io) && clock_late(&c, q)) return true;
    if ((++tries & 63) == 0) {
      sched_yield();
      clock_nap(&c);
    }
  } while (rc == 0 && again(s, q, &io));
  if (tries > 1) q->ns = now_ns() - c.t0;
  if (rc == NOT_CALLED) {
    fail(q, "usage", "the host does not call %s.%s", family, slot_names[s]);
    return true;
  }
  out_num(q, "rc", rc);
  if (writes[s].out) out_ptr(q, writes[s].out, io.out);
  if (s == S_connect || s == S_accept) out_ptr(q, "devcomm", io.dev);
  if (tries > 1) out_num(q, "tries", tries);
  if (s == S_devices) out_num(q, "n", io.i);
  if (s == S_makeVDevice) out_num(q, "d", io.i);
  if (s == S_reduceSupport) out_num(q, "supported", io.i);
  if (s == S_init && *family == 'p') out_num(q, "mask", io.i);
  if (s == S_test) {
    out_num(q, "done", io.i);
    text_add(&q->out, " size=");
    for (int i = 0; i < io.n && i < MAX_GROUP; i++)
      text_add(&q->out, "%s%d", i ? "," : "", io.narrow[i]);
  }
  return true;
}

const struct command load_commands[] = {{"load", c_load}, {"unload", c_unload}, {"sym", c_sym},
                                        {"bind", c_bind}, {NULL, NULL}};
