/* Faults on command: only simverbs has them, so these run when WEFT_SIMVERBS_CTL names its socket. */
#include "conform.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int command(const char* path, const char* line) {
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  char answer[512] = "";
  int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
  if (!connect(s, (struct sockaddr*)&a, sizeof a) && write(s, line, strlen(line)) > 0 && write(s, "\n", 1) == 1) {
    if (read(s, answer, sizeof answer - 1) < 0) answer[0] = 0;
  }
  close(s);
  if (strcmp(answer, "ok\n")) ok(0, "%s: %s", line, answer);
  return !strcmp(answer, "ok\n");
}

static int event(struct side* s, struct ibv_async_event* e, int ms) {
  struct pollfd p = {.fd = s->ctx->async_fd, .events = POLLIN};
  if (poll(&p, 1, ms) != 1 || ibv_get_async_event(s->ctx, e)) return 0;
  ibv_ack_async_event(e);
  return 1;
}

static void links(const char* ctl) {
  struct pair p;
  struct address b;
  struct ibv_wc wc = {0};
  struct ibv_async_event e;
  struct ibv_port_attr port;
  begin("link down and up");
  if (pair(&p, &(struct options){.timeout = 14, .retry = 3})) return;
  self_address(&p.b, &b);
  command(ctl, "link sim0 down");
  ok(event(&p.a, &e, 2000) && e.event_type == IBV_EVENT_PORT_ERR && e.element.port_num == 1, "PORT_ERR");
  ok(!ibv_query_port(p.a.ctx, 1, &port) && port.state == IBV_PORT_DOWN, "the port is down");
  command(ctl, "link sim0 up");
  ok(event(&p.a, &e, 2000) && e.event_type == IBV_EVENT_PORT_ACTIVE, "PORT_ACTIVE");
  ok(!post(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 8, &b, 0, IBV_SEND_SIGNALED) && poll_one(p.a.scq, &wc, 2000) == 1 &&
    !wc.status, "an idle queue pair has not noticed");
  command(ctl, "link sim0 down");
  post(&p.a, IBV_WR_RDMA_WRITE, 2, 0, 8, &b, 0, 0);
  ok(poll_one(p.a.scq, &wc, 2000) == 1 &&
    wc.status == IBV_WC_LOC_QP_OP_ERR, "a write on a port that is down (status %d)", (int)wc.status);
  post(&p.a, IBV_WR_RDMA_WRITE, 3, 0, 8, &b, 0, 0);
  ok(poll_one(p.a.scq, &wc, 2000) == 1 &&
    wc.status == IBV_WC_WR_FLUSH_ERR, "what follows is flushed (status %d)", (int)wc.status);
  command(ctl, "link sim0 up");
  unpair(&p);
}

/* Whoever asks for larger packets than a port carries has them lost, in order or not. */
static void large_packets(const char* ctl) {
  struct pair p;
  struct address b;
  struct ibv_wc wc = {0};
  struct ibv_port_attr port;
  begin("a path MTU above the port's");
  if (pair(&p, &(struct options){.path_mtu = IBV_MTU_4096, .timeout = 12, .retry = 1})) return;
  if (ibv_query_port(p.a.ctx, 1, &port) || port.active_mtu == IBV_MTU_4096)
    { skip("the port carries any"); unpair(&p); return; }
  self_address(&p.b, &b);
  command(ctl, "reorder sim0 on");
  pattern(p.a.mem, 4096, 23);
  ok(!post(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 1024, &b, 0, IBV_SEND_SIGNALED) && poll_one(p.a.scq, &wc, 5000) == 1 &&
    !wc.status && is_pattern(p.b.mem, 1024, 23), "a small packet passes (status %d)", (int)wc.status);
  post(&p.a, IBV_WR_RDMA_WRITE, 2, 0, 4096, &b, 8192, IBV_SEND_SIGNALED);
  ok(poll_one(p.a.scq, &wc, 5000) == 1 && wc.wr_id == 2 && wc.status == IBV_WC_RETRY_EXC_ERR &&
    !p.b.mem[8192], "a large one is lost (status %d)", (int)wc.status);
  command(ctl, "reorder sim0 off");
  unpair(&p);
}

static void holes(const char* ctl) {
  struct pair p;
  struct address b;
  struct ibv_wc wc = {0};
  begin("blackhole");
  if (pair(&p, &(struct options){.timeout = 18, .retry = 3})) return;
  self_address(&p.b, &b);
  memset(p.a.mem, 1, 16);
  command(ctl, "blackhole sim1 rx");
  post(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 8, &b, 0, IBV_SEND_SIGNALED);
  ok(quiet(p.a.scq, 100) && !p.b.mem[0], "what is sent does not arrive");
  command(ctl, "blackhole sim1 off");
  ok(poll_one(p.a.scq, &wc, 2000) == 1 && !wc.status && p.b.mem[0] == 1, "it arrives when the path returns in time");
  unpair(&p);
  if (pair(&p, &(struct options){.timeout = 14, .retry = 3})) return;
  self_address(&p.b, &b);
  memset(p.a.mem, 1, 16);
  command(ctl, "blackhole sim1 tx");
  post(&p.a, IBV_WR_RDMA_WRITE, 2, 0, 8, &b, 8, IBV_SEND_SIGNALED);
  ok(quiet(p.a.scq, 50) && p.b.mem[8] == 1, "when only answers are lost the data is there and nobody says so");
  ok(poll_one(p.a.scq, &wc, 2000) == 1 &&
    wc.status == IBV_WC_RETRY_EXC_ERR, "until the retries are over (status %d)", (int)wc.status);
  command(ctl, "blackhole sim1 off");
  unpair(&p);
}

static void times(const char* ctl) {
  struct pair p;
  struct address b;
  struct ibv_wc wc = {0};
  begin("delay");
  if (pair(&p, &(struct options){.send_wr = 512})) return;
  self_address(&p.b, &b);
  command(ctl, "delay sim0 20000");
  uint64_t before = now_ms();
  post(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 8, &b, 0, IBV_SEND_SIGNALED);
  ok(poll_one(p.a.scq, &wc, 2000) == 1 && !wc.status && now_ms() - before >= 19, "a write takes its time");
  command(ctl, "delay sim0 0");
  begin("rate");
  command(ctl, "rate sim0 0.1");
  pattern(p.a.mem, SIZE, 3);
  before = now_ms();
  for (uint64_t i = 0; i < 8; i++) post(&p.a, IBV_WR_RDMA_WRITE, i, 0, SIZE, &b, 0, IBV_SEND_SIGNALED);
  int good = 1;
  for (uint64_t i = 0; i < 8; i++) good &= poll_one(p.a.scq, &wc, 5000) == 1 && !wc.status && wc.wr_id == i;
  int ms = (int)(now_ms() - before);
  ok(good && is_pattern(p.b.mem, SIZE, 3) && ms >= 70, "8 MiB at 0.1 GB/s are not faster than that (%d ms)", ms);
  command(ctl, "rate sim0 0");
  unpair(&p);
}

static void injected(const char* ctl) {
  struct pair p;
  struct address b;
  struct ibv_wc wc = {0};
  begin("error on the third request");
  if (pair(&p, &(struct options){0})) return;
  self_address(&p.b, &b);
  memset(p.a.mem, 1, 64);
  command(ctl, "error sim0 3 RETRY_EXC_ERR");
  for (uint64_t i = 0; i < 4; i++) post(&p.a, IBV_WR_RDMA_WRITE, i, 0, 1, &b, i, IBV_SEND_SIGNALED);
  static const enum ibv_wc_status want[] = {IBV_WC_SUCCESS, IBV_WC_SUCCESS, IBV_WC_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR};
  for (int i = 0; i < 4; i++)
    ok(poll_one(p.a.scq, &wc, 2000) == 1 && wc.status == want[i], "request %d: status %d", i, (int)wc.status);
  ok(p.b.mem[1] == 1 && !p.b.mem[2], "the third was not placed");
  unpair(&p);
  begin("functions that fail");
  command(ctl, "fail create_cq 2 ENOMEM");
  struct side s;
  struct options o = {0};
  errno = 0;
  ok(open_side(&s, 0, &o) != 0 && s.scq && !s.rcq && errno == ENOMEM, "the second create_cq: errno %d", errno);
  close_side(&s);
  command(ctl, "fail modify_qp 1 EIO");
  struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
  ok(!open_side(&p.a, 0, &o) && !open_side(&p.b, 1, &o), "two ends");
  ok(ibv_modify_qp(p.a.qp, &a, IBV_QP_STATE) == EIO &&
    !ibv_modify_qp(p.a.qp, &a, IBV_QP_STATE), "the first modify_qp, and only that");
  unpair(&p);
}

/* Many small writes, then the immediate: by then all are there; before it, any order. */
static void reordered(const char* ctl) {
  struct pair p;
  struct address b;
  struct ibv_wc wc = {0};
  begin("reordered placement");
  if (pair(&p, &(struct options){0})) return;
  self_address(&p.b, &b);
  command(ctl, "reorder sim0 on");
  pattern(p.a.mem, 32 * 4096, 6);
  post_receive(&p.b, 1, 0, 0);
  for (uint64_t i = 0; i < 32; i++) post(&p.a, IBV_WR_RDMA_WRITE, i, i * 4096, 4096, &b, i * 4096, 0);
  post(&p.a, IBV_WR_RDMA_WRITE_WITH_IMM, 32, 0, 0, &b, 0, IBV_SEND_SIGNALED);
  ok(poll_one(p.b.rcq, &wc, 2000) == 1 && !wc.status &&
    is_pattern(p.b.mem, 32 * 4096, 6), "all is there at the immediate");
  ok(poll_one(p.a.scq, &wc, 2000) == 1 && wc.wr_id == 32, "completions keep their order");
  command(ctl, "reorder sim0 off");
  unpair(&p);
}

static void events(const char* ctl) {
  struct pair p;
  struct ibv_async_event e;
  char line[64];
  begin("events");
  if (pair(&p, &(struct options){0})) return;
  command(ctl, "event sim0 DEVICE_FATAL");
  ok(event(&p.a, &e, 2000) && e.event_type == IBV_EVENT_DEVICE_FATAL, "DEVICE_FATAL");
  snprintf(line, sizeof line, "event sim0 QP_FATAL %u", p.a.qp->qp_num);
  command(ctl, line);
  ok(event(&p.a, &e, 2000) && e.event_type == IBV_EVENT_QP_FATAL &&
    e.element.qp == p.a.qp, "QP_FATAL names its queue pair");
  command(ctl, "gid sim0 5 10.109.0.1/24");
  union ibv_gid g;
  ok(event(&p.a, &e, 2000) && e.event_type == IBV_EVENT_GID_CHANGE && !ibv_query_gid(p.a.ctx, 1, 5, &g) &&
    g.raw[13] == 109, "a GID comes");
  command(ctl, "gid sim0 5 none");
  ok(event(&p.a, &e, 2000) && !ibv_query_gid(p.a.ctx, 1, 5, &g) && !g.raw[13], "and goes");
  unpair(&p);
}

/* Who is stopped on command, at any moment of its calls, keeps nobody from theirs. */
static void stopped(const char* ctl) {
  enum { PEER_FD = 3 };
  struct side s;
  struct options o = {0};
  int sv[2], good = 1, rounds = 0;
  char line[32], c;
  begin("a process stopped while it makes objects");
  if (open_side(&s, 0, &o) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv)) { ok(0, "begins"); return; }
  fflush(stdout);
  pid_t pid = fork();
  if (!pid) {
    dup2(sv[1], PEER_FD);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* exec keeps it */
    unsetenv("WEFT_SIMVERBS_CTL"); /* that is this process's */
    execl("/proc/self/exe", "conform", "--child", "creates", (char*)NULL);
    _exit(127);
  }
  close(sv[1]);
  good = pid > 0 && read(sv[0], &c, 1) == 1;
  snprintf(line, sizeof line, "stop %d", (int)pid);
  alarm(60); /* who waits for a lock waits for ever */
  for (; good && rounds < 200; rounds++) {
    good = command(ctl, line);
    struct ibv_cq* cq = good ? ibv_create_cq(s.ctx, 16, NULL, NULL, 0) : NULL;
    good = cq && !ibv_destroy_cq(cq) && !kill(pid, SIGCONT);
    usleep(200);
  }
  alarm(0);
  ok(good && rounds == 200, "others make theirs (%d of 200)", rounds);
  if (pid > 0) kill(pid, SIGKILL);
  if (pid > 0) waitpid(pid, NULL, 0);
  close(sv[0]);
  close_side(&s);
}

void test_faults(void) {
  const char* ctl = getenv("WEFT_SIMVERBS_CTL");
  begin("faults on command");
  if (!ctl) { skip("WEFT_SIMVERBS_CTL is not set: not simverbs"); return; }
  links(ctl);
  holes(ctl);
  times(ctl);
  injected(ctl);
  reordered(ctl);
  large_packets(ctl);
  events(ctl);
  stopped(ctl);
}
