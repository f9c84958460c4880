/* Several processes: a device works for a process that is stopped, and stops with one that is killed; what sysfs
 * says of it stays while others come. */
#include "conform.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PEER_FD = 3 };

static int swap_addresses(struct side* s, int fd, struct address* peer) {
  struct address self;
  self_address(s, &self);
  return write(fd, &self, sizeof self) != sizeof self || read(fd, peer, sizeof *peer) != sizeof *peer;
}

/* Makes and destroys objects until it is killed. */
static int create_on(void) {
  struct side s;
  struct options o = {0};
  char c = 'r';
  if (open_side(&s, 1, &o) || write(PEER_FD, &c, 1) != 1) return 1;
  for (struct ibv_cq* cq; (cq = ibv_create_cq(s.ctx, 4096, NULL, NULL, 0));) ibv_destroy_cq(cq);
  return 1;
}

/* The far end: connects, then does what each byte says. */
int child_process(const char* spec, const char* what) {
  struct side s;
  struct address peer;
  struct ibv_wc wc = {0};
  struct options o = {.timeout = 14, .retry = 3};
  char c;
  if (!strcmp(what, "list")) return 0; /* main has */
  if (!strcmp(what, "creates")) return create_on();
  if (open_side(&s, 1, &o) || swap_addresses(&s, PEER_FD, &peer) || connect_side(&s, &peer, &o)) return 1;
  for (uint64_t i = 0; i < 16; i++) post_receive(&s, i, 0, 8);
  for (c = 'r'; write(PEER_FD, &c, 1) == 1 && read(PEER_FD, &c, 1) == 1;) {
    if (c == 'd') ibv_dereg_mr(s.mr);
    if (c == 'p') c = poll_one(s.rcq, &wc, 5000) == 1 && !wc.status && is_pattern(s.mem, 70000, 12) ? 'y' : 'n';
  }
  free(s.mem);
  return 0;
}

static pid_t start(const char* self, const char* spec, struct side* s, struct address* peer, int* fd, int timeout) {
  int sv[2];
  char c = 0;
  struct options o = {.timeout = timeout, .retry = 3};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv)) return -1;
  fflush(stdout);
  pid_t pid = fork();
  if (!pid) {
    dup2(sv[1], PEER_FD);
    if (spec) execl("/proc/self/exe", self, "--ends", spec, "--child", "x", (char*)NULL);
    else execl("/proc/self/exe", self, "--child", "x", (char*)NULL);
    _exit(127);
  }
  close(sv[1]);
  *fd = sv[0];
  if (pid < 0 || open_side(s, 0, &o) || swap_addresses(s, *fd, peer) || connect_side(s, peer, &o) ||
      read(*fd, &c, 1) != 1) {
    ok(0, "two processes connect");
    return -1;
  }
  return pid;
}

static char ask(int fd, char c) {
  char answer = 0;
  return write(fd, &c, 1) == 1 && read(fd, &answer, 1) == 1 ? answer : 0;
}

static int has_vendor(const char* ibdev) {
  char path[512], text[32] = "";
  snprintf(path, sizeof path, "%s/device/vendor", ibdev);
  FILE* f = fopen(path, "re");
  int good = f && fgets(text, sizeof text, f) && !strncmp(text, "0x", 2);
  if (f) fclose(f);
  return good;
}

/* Every process that lists the devices sets the simulated ones up. */
static void test_sysfs(const char* self) {
  struct side s;
  struct options o = {0};
  begin("processes that come");
  if (open_side(&s, 0, &o)) { ok(0, "a device opens"); return; }
  const char* ibdev = s.ctx->device->ibdev_path;
  if (!has_vendor(ibdev)) skip("a device without a PCI function");
  else {
    int good = 1, came = 0;
    for (int i = 0; i < 12; i++) {
      int status;
      fflush(stdout);
      pid_t pid = fork();
      if (!pid) {
        execl("/proc/self/exe", self, "--child", "list", (char*)NULL);
        _exit(127);
      }
      while (waitpid(pid, &status, WNOHANG) == 0) good &= has_vendor(ibdev);
      came += pid > 0 && !status;
    }
    ok(came == 12, "list the devices (%d of 12)", came);
    ok(good, "leave what sysfs says of a device as it is");
  }
  close_side(&s);
}

struct writer { struct side s; struct address peer; pthread_t thread; int fd, started; pid_t pid; uint32_t done;
  struct ibv_wc last; };

/* Writes, at first with receives to complete, until it cannot. */
static void* write_on(void* arg) {
  struct writer* w = arg;
  enum ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  uint64_t end = now_ms() + 10000;
  do {
    if (post(&w->s, opcode, w->done, 0, SIZE, &w->peer, 0, IBV_SEND_SIGNALED) ||
        poll_one(w->s.scq, &w->last, 10000) != 1)
      break;
    if (__atomic_add_fetch(&w->done, 1, __ATOMIC_RELEASE) == 16) opcode = IBV_WR_RDMA_WRITE;
  } while (!w->last.status && now_ms() < end);
  return NULL;
}

/* Who writes to processes that are killed meanwhile is told so, lives on, and can go on with others. */
static void test_kills(const char* self, const char* spec) {
  enum { WRITERS = 2 };
  int rounds = 0, good = 1, status = 0;
  begin("processes killed while they are written to");
  for (uint64_t end = now_ms() + 2500; rounds < 24 && good && (now_ms() < end || rounds < 2); rounds++) {
    struct writer w[WRITERS] = {0};
    for (int i = 0; i < WRITERS; i++) {
      w[i].pid = start(self, spec, &w[i].s, &w[i].peer, &w[i].fd, 12);
      w[i].started = w[i].pid > 0 && !pthread_create(&w[i].thread, NULL, write_on, &w[i]);
      good &= w[i].started;
    }
    for (int i = 0; i < WRITERS; i++) {
      for (uint64_t wait = now_ms() + 5000;
          w[i].started && __atomic_load_n(&w[i].done, __ATOMIC_ACQUIRE) < 3 && now_ms() < wait;)
        usleep(500);
      if (w[i].pid > 0) kill(w[i].pid, SIGKILL);
    }
    for (int i = 0; i < WRITERS; i++) {
      if (w[i].started) pthread_join(w[i].thread, NULL);
      if (w[i].pid > 0) waitpid(w[i].pid, NULL, 0);
      good &= w[i].last.status == IBV_WC_RETRY_EXC_ERR;
      if (w[i].last.status != IBV_WC_RETRY_EXC_ERR) status = (int)w[i].last.status;
      close(w[i].fd);
      close_side(&w[i].s);
    }
  }
  ok(good, "RETRY_EXC_ERR each time (status %d in round %d)", good ? (int)IBV_WC_RETRY_EXC_ERR : status, rounds);
}

void test_processes(const char* self, const char* spec) {
  struct side s;
  struct address peer;
  struct ibv_wc wc = {0};
  int fd, status;
  begin("a stopped process");
  pid_t pid = start(self, spec, &s, &peer, &fd, 14);
  if (pid < 0) return;
  kill(pid, SIGSTOP);
  waitpid(pid, &status, WUNTRACED);
  pattern(s.mem, 70000, 12);
  int good = 1;
  for (uint64_t i = 0; i < 8; i++) good &= !post(&s, IBV_WR_RDMA_WRITE, i, 0, 70000, &peer, 0, IBV_SEND_SIGNALED);
  good &= !post(&s, IBV_WR_RDMA_WRITE_WITH_IMM, 8, 0, 0, &peer, 0, IBV_SEND_SIGNALED);
  for (uint64_t i = 0; i < 9; i++) good &= poll_one(s.scq, &wc, 5000) == 1 && !wc.status && wc.wr_id == i;
  ok(good, "acknowledges (status %d)", (int)wc.status);
  post(&s, IBV_WR_RDMA_READ, 9, 1 << 19, 70000, &peer, 0, IBV_SEND_SIGNALED);
  ok(poll_one(s.scq, &wc, 5000) == 1 && !wc.status && is_pattern(s.mem + (1 << 19), 70000, 12), "and can be read");
  kill(pid, SIGCONT);
  ok(ask(fd, 'p') == 'y', "finds all of it when it goes on");
  begin("a region that is deregistered");
  ok(ask(fd, 'd') == 'd', "at the other end");
  post(&s, IBV_WR_RDMA_WRITE, 1, 0, 8, &peer, 0, IBV_SEND_SIGNALED);
  ok(poll_one(s.scq, &wc, 5000) == 1 &&
    wc.status == IBV_WC_REM_ACCESS_ERR, "REM_ACCESS_ERR (status %d)", (int)wc.status);
  close(fd);
  waitpid(pid, &status, 0);
  close_side(&s);
  begin("a killed process");
  pid = start(self, spec, &s, &peer, &fd, 14);
  if (pid < 0) return;
  kill(pid, SIGKILL);
  waitpid(pid, &status, 0);
  uint64_t end = now_ms() + 10000; /* its device may take a moment to notice */
  do {
    good = !post(&s, IBV_WR_RDMA_WRITE, 1, 0, 8, &peer, 0, IBV_SEND_SIGNALED) && poll_one(s.scq, &wc, 10000) == 1;
  } while (good && !wc.status && now_ms() < end);
  ok(good && wc.status == IBV_WC_RETRY_EXC_ERR, "RETRY_EXC_ERR (status %d)", (int)wc.status);
  close(fd);
  close_side(&s);
  test_kills(self, spec);
  test_sysfs(self);
}
