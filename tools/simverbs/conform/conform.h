/* The conformance program: plain libibverbs calls, one test per rule of the reliable connection, TAP on stdout. It
 * compiles against headers/verbs or <infiniband/verbs.h> and runs on simverbs and on real devices. */
#ifndef CONFORM_H
#define CONFORM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdint.h>
#include <stdio.h>

#ifdef CONFORM_REAL_HEADER
#include <infiniband/verbs.h>
#else
#include "verbs/verbs.h"
#endif

enum { SIZE = 1 << 20 };

struct side { /* one end of a connection: device, memory, queues */
  struct ibv_context* ctx;
  struct ibv_pd* pd;
  struct ibv_mr* mr;
  struct ibv_comp_channel* chan;
  struct ibv_cq *scq, *rcq;
  struct ibv_qp* qp;
  uint8_t* mem;
  union ibv_gid gid;
  int port, gid_index;
  enum ibv_mtu mtu;
};

struct address { /* what the ends tell each other */
  union ibv_gid gid;
  uint32_t qpn, rkey;
  uint64_t mem;
  int mtu;
};

struct options { /* of pair(); zero is the usual */
  int access, timeout, retry, rnr_retry, inline_data, send_wr, recv_wr, cqe, channel, sig_all, path_mtu, stay_init;
};

struct pair { struct side a, b; };

/* check.c */
void report(int good, const char* format, ...) __attribute__((format(printf, 2, 3)));
/* What is printed is looked at after what is tested. */
#define ok(good, ...) do { int good_ = (good); report(good_, __VA_ARGS__); } while (0)
void skip(const char* format, ...) __attribute__((format(printf, 1, 2)));
int failures(void);
void begin(const char* name);
uint64_t now_ms(void);
int find_ends(const char* spec);                 /* chooses the two devices; 0 or -1 */
int open_side(struct side* s, int end, const struct options* o);
void close_side(struct side* s);
void self_address(const struct side* s, struct address* out);
int connect_side(struct side* s, const struct address* peer, const struct options* o);
int pair(struct pair* p, const struct options* o);
void unpair(struct pair* p);
int post(struct side* s, enum ibv_wr_opcode opcode, uint64_t id, size_t from, uint32_t len, const struct address* to,
  size_t at, unsigned flags);
int post_receive(struct side* s, uint64_t id, size_t at, uint32_t len);
int poll_one(struct ibv_cq* cq, struct ibv_wc* wc, int ms); /* 1, or 0 after ms */
int quiet(struct ibv_cq* cq, int ms);
void pattern(uint8_t* p, size_t n, unsigned seed);
int is_pattern(const uint8_t* p, size_t n, unsigned seed);

/* one per file */
void test_data(void);
void test_errors(void);
void test_states(void);
void test_queues(void);
void test_faults(void);
void test_processes(const char* self, const char* spec);
int child_process(const char* spec, const char* what);

#endif
