/* Queues that are full, completion channels, and what a reader of memory may rely on. */
#include "conform.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>

static int readable(int fd, int ms) {
  struct pollfd p = {.fd = fd, .events = POLLIN};
  return poll(&p, 1, ms) == 1;
}

static void full(void) {
  struct pair p;
  struct address b;
  struct ibv_wc wc = {0};
  begin("full queues");
  if (pair(&p, &(struct options){.send_wr = 16, .recv_wr = 16})) return;
  self_address(&p.b, &b);
  int n = 0, rc = 0;
  post(&p.a, IBV_WR_SEND, 0, 0, 8, &b, 0, IBV_SEND_SIGNALED); /* waits for a receive, and the others behind it */
  for (n = 1; n < 4096 && !(rc = post(&p.a, IBV_WR_RDMA_WRITE, (uint64_t)n, 0, 8, &b, 64, IBV_SEND_SIGNALED)); n++) {}
  ok(rc == ENOMEM && n >= 16, "a send queue takes what was asked for, then ENOMEM (%d, %d)", n, rc);
  int m = 0;
  for (; m < 4096 && !(rc = post_receive(&p.a, (uint64_t)m, 0, 8)); m++) {}
  ok(rc == ENOMEM && m >= 16, "so does a receive queue (%d, %d)", m, rc);
  post_receive(&p.b, 0, 0, 8);
  int good = 1;
  for (int i = 0; i < n; i++) good &= poll_one(p.a.scq, &wc, 5000) == 1 && !wc.status && wc.wr_id == (uint64_t)i;
  ok(good, "all complete in order once they can");
  ok(!post(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 8, &b, 64, IBV_SEND_SIGNALED) && poll_one(p.a.scq, &wc, 5000) == 1 &&
    !wc.status, "there is room again");
  unpair(&p);
}

static void overrun(void) {
  struct pair p;
  struct address b;
  begin("completion queue overrun");
  if (pair(&p, &(struct options){.cqe = 8})) return;
  self_address(&p.b, &b);
  for (uint64_t i = 0; i < 40; i++) post(&p.a, IBV_WR_RDMA_WRITE, i, 0, 8, &b, 0, IBV_SEND_SIGNALED);
  struct ibv_async_event e;
  int there = readable(p.a.ctx->async_fd, 2000);
  ok(there && !ibv_get_async_event(p.a.ctx, &e) && e.event_type == IBV_EVENT_CQ_ERR &&
    e.element.cq == p.a.scq, "an asynchronous event CQ_ERR");
  for (; there; there = readable(p.a.ctx->async_fd, 50) && !ibv_get_async_event(p.a.ctx, &e)) ibv_ack_async_event(&e);
  unpair(&p);
}

static void channel(void) {
  struct pair p;
  struct address b;
  struct ibv_wc wc = {0};
  struct ibv_cq* cq = NULL;
  void* context = NULL;
  begin("completion channel");
  if (pair(&p, &(struct options){.channel = 1})) return;
  self_address(&p.b, &b);
  for (uint64_t i = 0; i < 4; i++) post_receive(&p.b, i, 0, 8);
  post(&p.a, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, 8, &b, 64, 0);
  ok(poll_one(p.b.rcq, &wc, 5000) == 1 && !readable(p.b.chan->fd, 20), "unasked, no event");
  ok(!ibv_req_notify_cq(p.b.rcq, 0), "asked for the next");
  post(&p.a, IBV_WR_RDMA_WRITE_WITH_IMM, 2, 0, 8, &b, 64, 0);
  ok(readable(p.b.chan->fd, 5000) && !ibv_get_cq_event(p.b.chan, &cq, &context) && cq == p.b.rcq &&
    context == &p.b, "one event, naming queue and context");
  ibv_ack_cq_events(p.b.rcq, 1);
  ok(poll_one(p.b.rcq, &wc, 5000) == 1 && !readable(p.b.chan->fd, 20), "and no second");
  ibv_req_notify_cq(p.b.rcq, 1);
  post(&p.a, IBV_WR_SEND, 3, 0, 8, &b, 0, 0);
  ok(poll_one(p.b.rcq, &wc, 5000) == 1 && !readable(p.b.chan->fd, 20), "solicited only: an ordinary one is silent");
  post(&p.a, IBV_WR_SEND, 4, 0, 8, &b, 0, IBV_SEND_SOLICITED);
  ok(readable(p.b.chan->fd, 5000) && !ibv_get_cq_event(p.b.chan, &cq, &context), "a solicited one is not");
  ibv_ack_cq_events(p.b.rcq, 1);
  unpair(&p);
}

static void signals(void) {
  struct pair p;
  struct address b;
  struct ibv_wc wc = {0};
  begin("sq_sig_all");
  if (pair(&p, &(struct options){.sig_all = 1})) return;
  self_address(&p.b, &b);
  ok(!post(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 8, &b, 0, 0) && poll_one(p.a.scq, &wc, 5000) == 1 &&
    wc.wr_id == 1, "completes without being signaled");
  unpair(&p);
}

enum { ROUNDS = 50, LEN = 65536 };
static void* watch(void* arg) {
  struct side* s = arg;
  uintptr_t bad = 0;
  for (uint64_t i = 1; i <= ROUNDS; i++) {
    uint64_t end = now_ms() + 5000, *last = (uint64_t*)(void*)(s->mem + LEN - 8),
      *back = (uint64_t*)(void*)(s->mem + LEN);
    while (__atomic_load_n(last, __ATOMIC_ACQUIRE) != i && now_ms() < end) {}
    for (size_t k = 0; k < LEN - 8; k += 8) {
      uint64_t v;
      memcpy(&v, s->mem + k, 8);
      bad += v != i;
    }
    __atomic_store_n(back, i, __ATOMIC_RELEASE);
  }
  return (void*)bad;
}

static void last_word(void) {
  struct pair p;
  struct address b;
  struct ibv_wc wc = {0};
  pthread_t t;
  void* bad;
  begin("the last word of a write arrives last");
  if (pair(&p, &(struct options){0})) return;
  self_address(&p.b, &b);
  pthread_create(&t, NULL, watch, &p.b);
  for (uint64_t i = 1; i <= ROUNDS; i++) {
    for (size_t k = 0; k < LEN; k += 8) memcpy(p.a.mem + k, &i, 8);
    post(&p.a, IBV_WR_RDMA_WRITE, i, 0, LEN, &b, 0, IBV_SEND_SIGNALED);
    poll_one(p.a.scq, &wc, 5000);
    for (uint64_t end = now_ms() + 5000;
        __atomic_load_n((uint64_t*)(void*)(p.b.mem + LEN), __ATOMIC_ACQUIRE) != i && now_ms() < end;)
      {}
  }
  pthread_join(t, &bad);
  ok(!bad, "%d words were late", (int)(uintptr_t)bad);
  unpair(&p);
}

static uint32_t listing;

static void* list_on(void* arg) {
  while (__atomic_load_n(&listing, __ATOMIC_ACQUIRE)) {
    struct ibv_device** list = ibv_get_device_list(NULL);
    if (list) ibv_free_device_list(list);
  }
  return arg;
}

/* The devices that one thread uses stay as they are while another lists them. */
static void lists(void) {
  struct side s;
  pthread_t thread;
  begin("a list of devices");
  listing = 1;
  if (open_side(&s, 0, &(struct options){0}) || pthread_create(&thread, NULL, list_on, NULL))
    { ok(0, "a device opens"); return; }
  struct ibv_qp_init_attr a = {.send_cq = s.scq, .recv_cq = s.rcq, .qp_type = IBV_QPT_RC,
      .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
  int made = 0, failed = 0;
  for (uint64_t end = now_ms() + 1000; now_ms() < end && !failed; made++) {
    struct ibv_qp* qp = ibv_create_qp(s.pd, &a);
    failed = !qp || ibv_destroy_qp(qp);
  }
  __atomic_store_n(&listing, 0, __ATOMIC_RELEASE);
  pthread_join(thread, NULL);
  ok(!failed && made, "taken while queue pairs come and go (%d)", made);
  close_side(&s);
}

void test_queues(void) {
  full();
  overrun();
  channel();
  signals();
  last_word();
  lists();
}
