/* collnet.c: a plugin whose collNet reduces in memory that its ranks share, and writes down what it was asked for. Its net is weft's:
 * NCCL looks for collNet only where it has found a net. COLLNET_NET names weft's library, COLLNET_LOG the file to append to. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "net_v8.h"

enum { RANKS = 8, SLOTS = 8, BYTES = 1 << 20 };

/* What the ranks of a group share. A slot is a rank's part of the operation with that number, modulo SLOTS. */
struct slot {
  uint64_t written, read; /* atomic: how often */
  char data[BYTES];
};
struct group {
  struct slot slots[RANKS][SLOTS];
};

struct listener {
  char name[64];
};
struct coll {
  struct group* group;
  char name[64]; /* of the group */
  int rank, ranks;
  uint64_t next; /* operation */
  struct request {
    struct coll* coll;
    uint64_t number;
    const void* send;
    void* recv;
    size_t count;
    int written;
  } requests[SLOTS];
};

__attribute__((visibility("default"))) ncclNet_v8_t ncclNetPlugin_v8;

static void say(const char* format, ...) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  const char* path = getenv("COLLNET_LOG");
  FILE* f = path ? fopen(path, "a") : NULL;
  va_list args;
  if (!f) return;
  va_start(args, format);
  pthread_mutex_lock(&lock);
  vfprintf(f, format, args);
  fputc('\n', f);
  fclose(f);
  pthread_mutex_unlock(&lock);
  va_end(args);
}

__attribute__((constructor)) static void take_net(void) {
  const char* path = getenv("COLLNET_NET");
  void* lib = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  const ncclNet_v8_t* net = lib ? dlsym(lib, "ncclNetPlugin_v8") : NULL;
  if (net) ncclNetPlugin_v8 = *net;
}

static ncclResult_t init(ncclDebugLogger_t log) {
  say("init");
  (void)log;
  return ncclSuccess;
}

static ncclResult_t devices(int* n) { say("devices"); *n = 1; return ncclSuccess; }

static ncclResult_t properties(int dev, ncclNetProperties_v8_t* p) {
  static char name[] = "shared";
  *p = (ncclNetProperties_v8_t){.name = name, .guid = 1, .ptrSupport = NCCL_PTR_HOST, .speed = 10000, .port = 1, .maxComms = 64, .maxRecvs = 1};
  say("getProperties dev=%d", dev);
  return ncclSuccess;
}

static ncclResult_t reduce_support(ncclDataType_t type, ncclRedOp_t op, int* yes) {
  *yes = type == ncclFloat32 && op == ncclSum;
  say("reduceSupport type=%d op=%d", (int)type, (int)op);
  return ncclSuccess;
}

static ncclResult_t listen_(int dev, void* handle, void** out) {
  static int number;
  struct listener* l = calloc(1, sizeof *l);
  if (!l) return ncclSystemError;
  snprintf(l->name, sizeof l->name, "/weft-collnet-%d-%d", getpid(), __atomic_fetch_add(&number, 1, __ATOMIC_RELAXED));
  memcpy(handle, l->name, sizeof l->name);
  *out = l;
  say("listen dev=%d", dev);
  return ncclSuccess;
}

/* The group is named after the first rank's listener. Who comes first makes it, and the first rank removes it in the end. */
static ncclResult_t connect_(void* handles[], int ranks, int rank, void* listener, void** out) {
  struct coll* c = calloc(1, sizeof *c);
  const int fd = shm_open(handles[0], O_CREAT | O_RDWR, 0600);
  say("connect nranks=%d", ranks);
  if (!c || fd < 0 || ranks > RANKS || ftruncate(fd, sizeof *c->group)) return ncclSystemError;
  c->group = mmap(NULL, sizeof *c->group, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (c->group == MAP_FAILED) return ncclSystemError;
  memcpy(c->name, handles[0], sizeof c->name);
  c->rank = rank, c->ranks = ranks;
  *out = c;
  (void)listener;
  return ncclSuccess;
}

static ncclResult_t reg(void* comm, void* data, size_t size, int type, void** mh) {
  say("regMr type=%d", type);
  *mh = comm;
  (void)data, (void)size;
  return ncclSuccess;
}
static ncclResult_t dereg(void* comm, void* mh) { say("deregMr"); (void)comm, (void)mh; return ncclSuccess; }

static ncclResult_t iallreduce(void* comm, void* send, void* recv, int count, ncclDataType_t type, ncclRedOp_t op, void* smh, void* rmh, void** out) {
  struct coll* c = comm;
  struct request* r = &c->requests[c->next % SLOTS];
  *out = NULL;
  if (r->coll || type != ncclFloat32 || op != ncclSum || (size_t)count * sizeof(float) > BYTES) return r->coll ? ncclSuccess : ncclInvalidUsage;
  *r = (struct request){c, c->next++, send, recv, (size_t)count, 0};
  *out = r;
  say("iallreduce count=%d type=%d op=%d sendMhandle=%s recvMhandle=%s", count, (int)type, (int)op, smh ? "given" : "NULL", rmh ? "given" : "NULL");
  return ncclSuccess;
}

static ncclResult_t iallgather(void* comm, void* send, int parts, ncclNetSGE_v8_t* recv, size_t per, size_t at, size_t bytes, void* mh, void** out) {
  say("iallgather parts=%d bytesPerRank=%zu windowOffset=%zu windowBytes=%zu", parts, per, at, bytes);
  (void)comm, (void)send, (void)recv, (void)mh, (void)out;
  return ncclInternalError;
}
static ncclResult_t ireducescatter(void* comm, int parts, ncclNetSGE_v8_t* send, void* recv, size_t per, size_t at, size_t bytes,
                                   ncclDataType_t type, ncclRedOp_t op, void* mh, void** out) {
  say("ireducescatter parts=%d bytesPerRank=%zu windowOffset=%zu windowBytes=%zu type=%d op=%d", parts, per, at, bytes, (int)type, (int)op);
  (void)comm, (void)send, (void)recv, (void)mh, (void)out;
  return ncclInternalError;
}
static ncclResult_t iflush(void* comm, void* data, int size, void* mh, void** out) {
  say("iflush");
  *out = NULL;
  (void)comm, (void)data, (void)size, (void)mh;
  return ncclSuccess;
}

/* A slot serves again once every rank has read it. */
static ncclResult_t test(void* request, int* done, int* size) {
  struct request* r = request;
  struct coll* c = r->coll;
  const uint64_t turn = r->number / SLOTS;
  struct slot* mine = &c->group->slots[c->rank][r->number % SLOTS];
  *done = 0;
  if (!r->written) {
    if (__atomic_load_n(&mine->read, __ATOMIC_ACQUIRE) != turn * (uint64_t)c->ranks) return ncclSuccess;
    memcpy(mine->data, r->send, r->count * sizeof(float));
    __atomic_store_n(&mine->written, turn + 1, __ATOMIC_RELEASE);
    r->written = 1;
  }
  for (int i = 0; i < c->ranks; i++)
    if (__atomic_load_n(&c->group->slots[i][r->number % SLOTS].written, __ATOMIC_ACQUIRE) != turn + 1) return ncclSuccess;
  float* sum = r->recv;
  for (int i = 0; i < c->ranks; i++) {
    struct slot* s = &c->group->slots[i][r->number % SLOTS];
    for (size_t k = 0; k < r->count; k++) sum[k] = (i ? sum[k] : 0) + ((const float*)(const void*)s->data)[k];
    __atomic_fetch_add(&s->read, 1, __ATOMIC_RELEASE);
  }
  *done = 1;
  if (size) *size = (int)(r->count * sizeof(float));
  r->coll = NULL;
  return ncclSuccess;
}

static ncclResult_t close_coll(void* comm) {
  struct coll* c = comm;
  say("closeColl");
  if (c->rank == 0) shm_unlink(c->name);
  munmap(c->group, sizeof *c->group);
  free(c);
  return ncclSuccess;
}

static ncclResult_t close_listen(void* listener) {
  struct listener* l = listener;
  say("closeListen");
  free(l);
  return ncclSuccess;
}

__attribute__((visibility("default"))) const ncclCollNet_v8_t ncclCollNetPlugin_v8 = {
    .name = "shared", .init = init, .devices = devices, .getProperties = properties, .listen = listen_, .connect = connect_,
    .reduceSupport = reduce_support, .regMr = reg, .deregMr = dereg, .iallreduce = iallreduce, .iallgather = iallgather,
    .ireducescatter = ireducescatter, .iflush = iflush, .test = test, .closeColl = close_coll, .closeListen = close_listen};
