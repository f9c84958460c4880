/* weft-host: what its parts share. PROTOCOL.md has the commands. */
#ifndef WEFT_HOST_H
#define WEFT_HOST_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include "common.h"
#include "profiler_net.h"
#include "tuner_algo.h"

/* Text that grows. */
struct text {
  char* s;
  size_t len, cap;
};
void text_add(struct text* t, const char* fmt, ...) __attribute__((format(printf, 2, 3)));
void text_escaped(struct text* t, const char* s);
void text_hex(struct text* t, const void* p, size_t n);

/* A request under way, and its reply. */
enum { MAX_ARGS = 96 };
struct req {
  struct req* next;
  char* line; /* owned; keys and values point into it */
  uint64_t id;
  const char *thread, *cmd;
  int argc;
  const char *key[MAX_ARGS], *val[MAX_ARGS];
  struct text out;
  int64_t ns;       /* inside the plugin; -1: the whole command */
  const char* code; /* why it could not be carried out, or NULL */
};
bool req_parse(struct req* q, char* line, bool addressed);
void req_run(struct req* q); /* carries it out and writes the reply */
const char* arg(const struct req* q, const char* key); /* NULL when absent */
int64_t num(const struct req* q, const char* key, int64_t absent);
void* ptr(const struct req* q, const char* key);
const char* str(const struct req* q, const char* key, const char* absent);
int list(const struct req* q, const char* key, int64_t* v, int max); /* entries found */
void out_num(struct req* q, const char* key, int64_t v);
void out_ptr(struct req* q, const char* key, const void* p);
void out_str(struct req* q, const char* key, const char* s); /* NULL is (null) */
void out_double(struct req* q, const char* key, double v);
void fail(struct req* q, const char* code, const char* fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A command's name and what carries it out. */
struct command {
  const char* name;
  void (*run)(struct req*);
};

/* Notes the descriptors that are open; what is opened later is a plugin's. Once, whoever calls first. */
void remember_fds(void);

extern const struct command load_commands[], event_commands[], mem_commands[], proc_commands[],
    ring_commands[], bench_commands[], conn_commands[], log_commands[], exchange_commands[],
    value_commands[], coll_commands[], fuzz_commands[], nccl_commands[];

/* Threads, and the flight page that outlives the process. */
struct flight {
  char name[24], slot[24];
  uint64_t calls;
  uint32_t inside, pad;
};
struct worker {
  char name[24];
  struct flight* flight;
  pthread_mutex_t mu; /* protects head, tail */
  pthread_cond_t some;
  struct req *head, *tail;
};
extern __thread struct worker* me; /* NULL on threads that are not the host's */
extern int sock_fd;                /* the client */
extern int child_fd;               /* >= 0 in a forked child: where lines go */
void line_write(const char* s, size_t n); /* one whole line */
int64_t now_ns(void);

static inline void flight_enter(const char* slot) {
  if (!me) return;
  __builtin_strncpy(me->flight->slot, slot, sizeof me->flight->slot - 1);
  me->flight->calls++;
  __atomic_store_n(&me->flight->inside, 1, __ATOMIC_RELEASE);
}
static inline void flight_leave(void) {
  if (me) __atomic_store_n(&me->flight->inside, 0, __ATOMIC_RELEASE);
}
/* Times one plugin call of a command. */
#define PLUGIN(q, slot, call)     \
  do {                            \
    flight_enter(slot);           \
    const int64_t t0_ = now_ns(); \
    call;                         \
    (q)->ns = now_ns() - t0_;     \
    flight_leave();               \
  } while (0)

/* The logger and the profiler callback that plugins are given. */
void host_logger(ncclDebugLogLevel level, unsigned long flags, const char* file, int line,
                 const char* fmt, ...);
ncclResult_t host_profiler(void** eHandle, int type, void* pHandle, int64_t pluginId,
                           void* extData);

/* Slots of all families. */
#define SLOTS(X)                                                                              \
  X(init) X(devices) X(pciPath) X(ptrSupport) X(getProperties) X(listen) X(connect) X(accept) \
  X(regMr) X(regMrDmaBuf) X(deregMr) X(isend) X(irecv) X(flush) X(iflush) X(test)             \
  X(closeSend) X(closeRecv) X(closeListen) X(getDeviceMr) X(irecvConsumed) X(makeVDevice)     \
  X(finalize) X(setNetAttr) X(reduceSupport) X(iallreduce) X(iallgather) X(ireducescatter)    \
  X(closeColl) X(startEvent) X(stopEvent) X(recordEventState) X(getCollInfo) X(getChunkSize)  \
  X(destroy)
#define SLOT_ENUM(s) S_##s,
enum slot { S_NONE, SLOTS(SLOT_ENUM) S_COUNT };
extern const char* const slot_names[S_COUNT];

/* Lists that a slot command reads, and what the slot wrote. */
enum { MAX_GROUP = 32, NOT_CALLED = -1 };
struct io {
  void *out, *dev; /* the pointer that the slot writes, and the device handle */
  int i, n, tags[MAX_GROUP], narrow[MAX_GROUP];
  void *data[MAX_GROUP], *mh[MAX_GROUP], *ph[MAX_GROUP];
  int64_t sizes[MAX_GROUP];
};

/* A collective, with the widest parameters of all versions. */
struct part {
  void *mh, *addr;
  int64_t size;
};
struct collective {
  enum slot slot; /* iallreduce, iallgather or ireducescatter */
  void *comm, *send, *recv, *smh, *rmh;
  int64_t count;                   /* elements of an all-reduce */
  int64_t per_rank, offset, bytes; /* of the others: a rank's share and the window, in bytes */
  int type, op, n;
  struct part parts[MAX_GROUP]; /* what a gather writes and a scatter reads */
};

/* How a table that is newer than the templates is shown to them: one of each version at a time. */
struct view {
  const void* real; /* the table that is shown, or NULL */
  void (*see)(const void* real);
  const void* seen;
  const char* news; /* what is not called, or passed as zero */
};

/* The first net tables that are called in another way than those before (internal/host/since.go). */
enum { SINCE_GROUPS = 5, SINCE_WIDE_REGMR = 8, SINCE_WIDE_SIZES = 9, SINCE_CONTEXTS = 11 };

/* A table: how to call it with the widest parameters of all versions. */
struct table {
  const char* base; /* what dlsym gave, or what is seen of it */
  int version;
  struct view* view; /* NULL: the templates know the version */
  int devs;          /* that makeVDevice takes at most; 0: the version has none */
  uint16_t off[S_COUNT]; /* of each slot; 0: the version has none */
  int (*call)(const struct table*, enum slot, struct req*, struct io*);
  int (*listen)(const struct table*, void* ctx, int dev, void* handle, void** comm);
  int (*connect)(const struct table*, void* ctx, int dev, void* handle, void** comm,
                 void** devcomm, const int* traffic_class);
  int (*accept)(const struct table*, void* listen, void** comm, void** devcomm);
  int (*regMr)(const struct table*, void* comm, void* data, int64_t size, int type, void** mh);
  int (*isend)(const struct table*, void* comm, void* data, int64_t size, int tag, void* mh,
               void* ph, void** req);
  int (*irecv)(const struct table*, void* comm, int n, void** data, int64_t* sizes, int* tags,
               void** mh, void** ph, void** req);
  int (*collective)(const struct table*, const struct collective*, void** req);
};
const struct table* table_known(const char* family, int version);
const char* family_symbol(const char* family); /* what its tables are called in a library; NULL: no such family */
const struct table* table_of(struct req* q, const char* family); /* NULL after fail() */
static inline void* slot_fn(const struct table* t, enum slot s) {
  return t->off[s] ? *(void* const*)(t->base + t->off[s]) : NULL;
}
static inline int net_test(const struct table* t, void* req, int* done, int* sizes) {
  return ((int (*)(void*, int*, int*))slot_fn(t, S_test))(req, done, sizes);
}
/* Calls of the loops: as cheap as they can be recorded. */
#define LOOP(name6, call)                           \
  ({                                                \
    __builtin_memcpy(me->flight->slot, name6, 6);   \
    me->flight->calls++;                            \
    __atomic_store_n(&me->flight->inside, 1, __ATOMIC_RELAXED); \
    const int rc_ = (call);                         \
    __atomic_store_n(&me->flight->inside, 0, __ATOMIC_RELAXED); \
    rc_;                                            \
  })
bool slot_command(struct req* q); /* q->cmd is FAMILY.SLOT; false: no such slot */

/* Small helpers of the loops. */
struct clock {
  int64_t t0, limit;
  struct rusage ru, thread;
};
void clock_start(struct clock* c, const struct req* q);
bool clock_late(const struct clock* c, struct req* q); /* past its limit: fail() was called */
void clock_nap(const struct clock* c); /* for loops that have polled in vain */
void clock_cpu(const struct clock* c, struct req* q);
void loop_failed(struct req* q, const char* slot, int rc);
void percentiles(struct req* q, int64_t* ns, int n);
uint64_t pattern_word(uint64_t seed, uint64_t i);
void pattern_fill(void* p, size_t n, uint64_t seed);
size_t pattern_check(const void* p, size_t n, uint64_t seed, int64_t* first);

/* Elements of all types: rank's values, and what all ranks' values come to (values.c). */
struct values {
  int type, op, nranks;
  int of; /* the rank whose values are looked for; -1: the result of the operation over all */
  uint64_t seed;
};
struct verdict {
  int64_t bad, first; /* elements that are wrong, and the first of them or -1 */
  double ulp;         /* the largest distance from the exact result, in units of its last place */
};
int64_t value_size(int type); /* 0: no such type */
void values_fill(void* p, int64_t first, int64_t count, const struct values* v, int rank);
void values_check(const void* p, int64_t first, int64_t count, const struct values* v, struct verdict* out);

#endif
