/* What the parts of simverbs share: the arena, which every process with the same configuration maps, and the objects of
 * this process. The README says what is simulated; arena.c, exec.c and engine.c tell how. */
#ifndef SIMVERBS_SIM_H
#define SIMVERBS_SIM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>

#include "verbs/verbs.h"
#undef ibv_query_port

enum { MAX_DEV = 64, MAX_PORT = 4, MAX_GID = 16, MAX_PKEY = 8, MAX_ROUTE = 64, MAX_PROC = 512, MAX_QP = 1 << 15,
  MAX_CQ = 1 << 15, MAX_MR = 1 << 16 };
enum { MAX_SGE = 16, MAX_INLINE = 1024 };
#define HEAP_BYTES ((uint64_t)4 << 30)

/* ---- The arena. Words that several processes write are touched through __atomic_* only. Objects name their process
 * in proc, and a place whose proc is 0 is free once its count of those who use it right now, ref or users, is 0.
 * ---- */

struct gid { union ibv_gid raw; uint32_t type, prefix, used; };

struct port { /* of a device of the configuration; index device * MAX_PORT + port - 1 */
  uint32_t down, hole;          /* hole: 1 what it sends is lost, 2 what it receives */
  uint32_t most[2];             /* packets with more payload are lost, of those it sends and it receives; 0: none */
  uint64_t rate[2];             /* bytes/s of what it sends and receives; 0: no bound */
  uint64_t delay;               /* ns one way */
  uint64_t tx, rx;              /* until when it is busy, ns */
  struct gid gids[MAX_GID];
};

struct shdev { uint32_t reorder, error_status, error_placed; int64_t error_in; uint32_t error_qpn; };

struct proc { uint32_t pid, kick, why; };
enum { WHY_CQ = 1, WHY_QP = 2, WHY_EVENT = 4 };

struct rq { uint32_t head, tail, mask, depth, stride; uint64_t ring; };
/* in a ring: only as many as stride has room for */
struct rwqe { uint64_t wr_id; uint32_t nsge, len; struct ibv_sge sge[MAX_SGE]; };

struct cqe { uint64_t wr_id; uint32_t seq, byte_len, imm, qpn, src, wqe; uint8_t status, opcode, flags, skip;
  uint32_t claimer; };
struct shcq { uint32_t users, proc, mask, depth, tail, head, armed, fired, full, notify; uint64_t ring; };

struct shqp {
  uint32_t qpn, ref, proc, gen; /* ref: those who execute a request at it right now */
  uint32_t state, cause, port, pd, access, dest, rnr_timer, rcq, sq_head, pkey; /* cause: an event to raise + 1 */
  struct rq rq __attribute__((aligned(64))); /* what receivers write apart from what senders write */
};

struct shmr {
  /* ref: LIVE and two counts of those who copy right now: in its process, by OWN, and in others, by 1 */
  uint32_t key, ref;
  uint32_t access, pd, proc;
  uint64_t iova, len, addr, from, to, off; /* [from, to) is shared, at off in its fd */
  int32_t fd;
  uint32_t gen;
};
#define LIVE 0x80000000u
#define OWN 0x10000u

struct event { uint32_t dev, type, arg; };

struct arena {
  uint64_t magic, size;
  uint32_t lock, hot, nevent, pds, next_qp, next_cq, next_mr;
  uint64_t heap_used, free_list[40], rng;
  struct proc procs[MAX_PROC];
  struct shdev devs[MAX_DEV];
  struct port ports[MAX_DEV * MAX_PORT];
  struct event events[64];
  struct shqp qps[MAX_QP];
  struct shcq cqs[MAX_CQ];
  struct shmr mrs[MAX_MR];
};

/* ---- The configuration ---- */

struct devconf {
  char name[32], pci[96], node[32], data_direct[96], link[16];
  uint64_t guid;
  int ib, ports, speed, mtu, max_inline, max_sge, max_qp, max_qp_wr, max_cqe, dmabuf, mlx5, ooo, down_fails, visible;
  uint32_t ece_vendor, ece_options;
  int npkey;
  uint16_t pkeys[MAX_PKEY]; /* of every port; the upper bit: a full member */
};
extern struct config {
  char dir[160], name[64];
  uint64_t seed;
  int ndev, nroute, share, retry7_forever;
  struct devconf dev[MAX_DEV];
  struct port port[MAX_DEV * MAX_PORT]; /* as they begin */
  struct gid route[MAX_ROUTE][2];       /* addresses in one reach those in the other */
} sv_conf;

/* ---- Objects of this process; the ibv_ struct comes first ---- */

struct vdev { struct ibv_device dev; struct devconf* conf; int index; uint32_t qps; };
struct vctx { struct verbs_context v; struct vdev* dev; int event_fd; struct vctx* next; };
struct vpd { struct ibv_pd pd; uint32_t id, used; };
struct vmr { struct ibv_mr mr; struct shmr* s; int fd; void* map; size_t map_len; uint64_t map_off; struct seg* seg; };
struct vchan { struct ibv_comp_channel chan; int event_fd; };
struct vcq {
  struct ibv_cq x;
  struct shcq* s;
  uint32_t slot, lock, got, async_got, used;
  uint64_t stuck;
};

struct op { /* one work request of a send queue */
  uint64_t wr_id, raddr, arg[2], first_fail, due, ack_at;
  uint32_t rkey, imm, len, done, wqe;
  uint8_t opcode, flags, nsge, status, inject, placed;
  struct ibv_sge* sge;
};

struct vqp {
  struct ibv_qp x;
  struct shqp* s;
  struct vctx* ctx;
  uint32_t slot, lock, recv_lock, tail, exec, acked, mask, depth, max_sge, max_inline, stride, sig_all, halted, active,
    got;
  uint32_t mtu_limit; /* longest message when the path MTU is more than the ports carry */
  uint8_t* ring;
  struct shqp* peer;
  struct port *from, *to;
  struct ibv_qp_attr attr;
  struct ibv_ece ece;
  struct rwqe taken; /* the peer's receive that a half-done request fills */
  int has_taken, rnr_tries;
  uint64_t wake;
};

extern struct arena* sv_arena;
extern uint32_t sv_me;      /* our slot in procs */
extern uint32_t sv_armed;   /* some function is to fail: fault.c */
extern struct vqp* sv_qps[MAX_QP];
extern struct vcq* sv_cqs[MAX_CQ];
extern struct vctx* sv_contexts;
/* the lock keeps what sv_contexts, sv_qps and sv_cqs name from going while another thread looks */
extern uint32_t sv_nactive, sv_objects_lock;

/* Every context is one of ours, whatever its abi_compat says. */
static inline struct vctx* sv_ctx(struct ibv_context* c) {
  return (struct vctx*)((uintptr_t)c - offsetof(struct verbs_context, context));
}

#define PUBLIC __attribute__((visibility("default")))
#define sv_log(format, ...) fprintf(stderr, "simverbs: " format "\n", ##__VA_ARGS__)
#define likely(x) __builtin_expect(!!(x), 1)
#define get(p) __atomic_load_n(&(p), __ATOMIC_ACQUIRE)
#define put(p, v) __atomic_store_n(&(p), v, __ATOMIC_RELEASE)
#define add(p, v) __atomic_fetch_add(&(p), v, __ATOMIC_ACQ_REL)

static inline uint64_t sv_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
void sv_lock_slow(uint32_t* lock);
static inline void sv_lock(uint32_t* lock) { /* among the threads of this process */
  if (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE)) sv_lock_slow(lock);
}
static inline int sv_trylock(uint32_t* lock) { return !__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE); }
static inline void sv_unlock(uint32_t* lock) { __atomic_store_n(lock, 0, __ATOMIC_RELEASE); }

/* arena.c */
int sv_attach(void);                       /* 0 or errno; the first call reads the configuration */
void sv_arena_lock(void);                  /* among processes */
void sv_arena_unlock(void);
uint64_t sv_heap_alloc(uint64_t bytes);    /* zeroed; 0: full */
void sv_heap_free(uint64_t at, uint64_t bytes);
static inline void* sv_heap(uint64_t at) { return (uint8_t*)sv_arena + at; }
void sv_kick(uint32_t proc, uint32_t why);
void sv_reap(void);                        /* frees what dead processes left */
void sv_wait_ref(uint32_t* ref);
uint64_t sv_random(void);
int sv_thread(void* (*run)(void*), void* arg); /* detached, all signals blocked; 0 or errno */
int sv_pipe(int fds[2]);                       /* its writer does not block; 0 or -1 */
void* sv_new(int e, size_t size);              /* zeroed; NULL and errno: e, or there is no memory */
void sv_settle(uint32_t* acknowledged, uint32_t* got); /* waits until they are equal */

/* config.c, device.c */
int sv_config_load(void);
void sv_device_setup(int i);
int sv_parse_gid(const char* text, struct gid* g);

/* reach.c */
int sv_same_net(const struct port* a, const struct port* b);
int sv_routed(const struct gid* from, const struct gid* to);

/* mr.c, share.c */
struct shmr* sv_mr_hold(uint32_t key, uint32_t proc, uint32_t pd, uint32_t access, uint64_t at, uint32_t len);
static inline void sv_mr_drop(struct shmr* m,
  uint32_t proc) { __atomic_fetch_sub(&m->ref, proc == sv_me ? OWN : 1, __ATOMIC_RELEASE); }
void sv_share(struct vmr* mr, struct shmr* s);
void sv_unshare(struct vmr* mr);
/* 0 or errno; last 8 bytes last */
int sv_put(struct shmr* m, uint64_t at, const struct iovec* iov, int n, uint32_t len);
int sv_fetch(struct shmr* m, uint64_t at, const struct iovec* iov, int n, uint32_t len);
void sv_share_sweep(void);

/* cq.c */
int sv_poll_cq(struct ibv_cq* cq, int n, struct ibv_wc* wc);
int sv_req_notify_cq(struct ibv_cq* cq, int solicited_only);
void sv_cq_push(uint32_t slot, const struct cqe* e, int solicited);
void sv_cq_clean(uint32_t slot, uint32_t qpn, int sends);
void sv_cq_scan(void);
/* by its owner, and by each queue pair that receives with it; the arena's lock is held */
void sv_cq_let(uint32_t slot);

/* rq.c */
/* no ring: full; the arena's lock is held */
void sv_rq_create(struct shqp* s, uint32_t rcq, uint32_t depth, uint32_t max_sge);
/* likewise: frees what is nobody's, once nobody completes receives any more */
void sv_rq_left(struct shqp* s);
int sv_rq_take(struct rq* q, struct rwqe* out); /* 1, or 0: empty */
int sv_post_recv(struct ibv_qp* qp, struct ibv_recv_wr* wr, struct ibv_recv_wr** bad);
void sv_rq_flush(struct shqp* s);

/* qp.c, send.c, exec.c */
int sv_post_send(struct ibv_qp* qp, struct ibv_send_wr* wr, struct ibv_send_wr** bad);
void sv_qp_error(struct vqp* q);              /* own QP to ERR, everything flushed; lock held */
enum { EXEC_DONE, EXEC_WAIT };
int sv_exec(struct vqp* q, struct op* o, uint64_t now);
int sv_silent(struct vqp* q, struct op* o, uint64_t now);
int sv_exec_reordered(struct vqp* q, uint64_t now);
static inline struct op* sv_op(struct vqp* q,
  uint32_t i) { return (struct op*)(q->ring + (size_t)(i & q->mask) * q->stride); }

/* engine.c */
int sv_engine_start(void);
void sv_progress(struct vqp* q, uint64_t now); /* lock held */
void sv_progress_all(void);
void sv_activate(struct vqp* q);
void sv_deactivate(struct vqp* q);
void sv_event(struct vctx* ctx, int type, uint32_t arg);
void sv_broadcast(int dev, int type, uint32_t arg);

/* fault.c: function names in the order of sv_functions */
#define SV_FUNCTIONS(F) F(open_device) F(query_device) F(query_port) F(query_port_speed) F(query_gid) F(query_gid_ex) \
  F(query_pkey) F(alloc_pd) F(dealloc_pd) F(reg_mr) F(reg_mr_iova2) F(reg_dmabuf_mr) F(dereg_mr) \
  F(create_comp_channel) \
  F(create_cq) F(destroy_cq) F(req_notify_cq) F(poll_cq) F(create_qp) F(modify_qp) F(query_qp) F(destroy_qp) \
  F(query_ece) F(set_ece) F(post_send) F(post_recv) F(get_async_event) \
  F(get_device_list) F(get_cq_event) F(fork_init) F(close_device) F(destroy_comp_channel)
enum sv_function {
#define F(name) FN_##name,
  SV_FUNCTIONS(F)
#undef F
  FN_COUNT
};
int sv_fail_slow(enum sv_function f);
static inline int sv_fail(enum sv_function f) {
  return likely(!__atomic_load_n(&sv_armed, __ATOMIC_RELAXED)) ? 0 : sv_fail_slow(f);
}
#define MAY_FAIL(f) do { int e_ = sv_fail(FN_##f); if (e_) return e_; } while (0)
#define MAY_FAIL_WITH(f, value) do { int e_ = sv_fail(FN_##f); if (e_) { errno = e_; return value; } } while (0)
void sv_control_start(void);
const char* sv_status_name(int status); /* text.c */
const char* sv_event_name(int event);
void sv_hot(void); /* recompute whether any link is out of the ordinary */

#endif
