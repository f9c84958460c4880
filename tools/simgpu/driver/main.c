/* One rank of a test of NCCL:
 *
 *   driver RANK RANKS FILE MODE [KEY=VALUE ...]
 *
 * FILE is where rank 0 leaves the ids of communicators, with a number behind it. The rank says what it does in lines
 * of its own, the last of which is "rank N: ok"; the status is 0 then, 1 if data was wrong, 3 if a call failed.
 * type= (f32, f16, i32, u8) goes with every mode; the modes are below, their other keys with them. */
#include "driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct mode {
  const char *name, *about;
  size_t (*run)(ncclComm_t comm);
  bool alone; /* makes its communicators itself */
} modes[] = {
    {"sizes", "ops= min= max= step= rounds= reg=1: operations of each size", mode_sizes, false},
    {"speed", "ops= sizes=8,64K,... batches= iters= most=: microseconds of an operation, of iters a batch, or "
      "as many as have most bytes", mode_speed, false},
    {"several", "n= rounds=: that many communicators at once, each with a thread", mode_several, false},
    {"random", "n= seed= max=: random groups on two communicators", mode_random, false},
    {"registered", "bytes= send=1 recv=1: rank 0 sends to rank 1, from and into registered buffers", mode_registered,
      false},
    {"split", "halves of the communicator, without and with shared resources", mode_split, false},
    {"abort", "absent=RANK: all abort while that rank stays away; a new communicator follows", mode_abort, false},
    {"traffic", "ops= size= count= limit= idle=N late=FILE: operations until one fails, or count are done; "
      "idle waits for a line of stdin before the Nth, who finds FILE.RANK comes late to each", mode_traffic, false},
    {"outstanding", "n= size=: destroys the communicator behind operations that are not done", mode_outstanding, false},
    {"storm", "n=: makes, uses and destroys communicators", mode_storm, true},
    {"threads", "RANKS threads of this process, each with a device of its own; RANK is 0", mode_threads, true},
};
enum { MODES = sizeof modes / sizeof *modes };

_Thread_local int me;
int ranks;
static const char* id_file;
static char** options;

const char* option(const char* key, const char* otherwise) {
  const size_t n = strlen(key);
  for (char** o = options; *o; o++)
    if (!strncmp(*o, key, n) && (*o)[n] == '=') return *o + n + 1;
  return otherwise;
}

size_t size_of(const char* key, const char* text) {
  char* end;
  const size_t v = strtoull(text, &end, 10);
  switch (*end) {
    case '\0': return v;
    case 'K': return v << 10;
    case 'M': return v << 20;
    case 'G': return v << 30;
    default: fail("%s=%s is no size", key, text);
  }
}

size_t option_size(const char* key, const char* otherwise) { return size_of(key, option(key, otherwise)); }

static void vsay(const char* format, va_list args) {
  flockfile(stdout);
  printf("rank %d: ", me);
  vprintf(format, args);
  printf("\n");
  fflush(stdout);
  funlockfile(stdout);
}

void say(const char* format, ...) {
  va_list args;
  va_start(args, format);
  vsay(format, args);
  va_end(args);
}

void fail(const char* format, ...) {
  va_list args;
  va_start(args, format);
  vsay(format, args);
  va_end(args);
  fflush(NULL);
  _exit(3);
}

const char* last_error(ncclComm_t comm) {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 13, 0)
  return ncclGetLastError(comm);
#else
  return "";
#endif
}

void nccl_check(ncclResult_t r, const char* call) {
  if (r != ncclSuccess) fail("%s: %s (%s)", call, ncclGetErrorString(r), last_error(NULL));
}

void cuda_check(cudaError_t e, const char* call) {
  if (e != cudaSuccess) fail("%s: %s", call, cudaGetErrorString(e));
}

double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void write_id(const char* path, const ncclUniqueId* id) {
  char fresh[4096];
  snprintf(fresh, sizeof fresh, "%s.new", path);
  FILE* f = fopen(fresh, "w");
  if (!f || fwrite(id, sizeof *id, 1, f) != 1 || fclose(f) || rename(fresh, path)) fail("%s cannot be written", path);
}

static void read_id(const char* path, ncclUniqueId* id) {
  for (const double end = seconds() + 120; seconds() < end; usleep(2000)) {
    FILE* f = fopen(path, "r");
    if (!f) continue;
    const size_t n = fread(id, sizeof *id, 1, f);
    fclose(f);
    if (n == 1) return;
  }
  fail("no id in %s for 120 s: has rank 0 started?", path);
}

ncclComm_t join(int number) {
  char path[4000];
  ncclUniqueId id;
  ncclComm_t comm;
  snprintf(path, sizeof path, "%s.%d", id_file, number);
  if (me == 0) {
    NCCL(ncclGetUniqueId(&id));
    write_id(path, &id);
  } else {
    read_id(path, &id);
  }
  NCCL(ncclCommInitRank(&comm, ranks, id, me));
  return comm;
}

void meet(int number) {
  char path[4000];
  for (int r = 0; r < ranks; r++) {
    const int rank = (me + r) % ranks; /* its own first */
    snprintf(path, sizeof path, "%s.%d.%d", id_file, number, rank);
    FILE* f = rank == me ? fopen(path, "w") : NULL;
    if (rank == me && (!f || fclose(f))) fail("%s cannot be written", path);
    for (const double end = seconds() + 120; access(path, F_OK); usleep(2000))
      if (seconds() > end) fail("no %s for 120 s: rank %d is not done", path, rank);
  }
}

void before_destroy(void) {
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 17, 0)
  meet(1000);
#endif
}

static int usage(void) {
  fprintf(stderr, "driver RANK RANKS FILE MODE [KEY=VALUE ...]\n");
  for (int i = 0; i < MODES; i++) fprintf(stderr, "  %-12s %s\n", modes[i].name, modes[i].about);
  return 2;
}

int main(int argc, char** argv) {
  if (argc < 5) return usage();
  me = atoi(argv[1]);
  ranks = atoi(argv[2]);
  id_file = argv[3];
  options = argv + 5;
  const struct mode* mode = NULL;
  for (int i = 0; i < MODES; i++)
    if (!strcmp(argv[4], modes[i].name)) mode = &modes[i];
  if (!mode || ranks < 2 || me < 0 || me >= ranks) return usage();
  type_name = option("type", "f32");
  const char* device = getenv("SIMGPU_DEVICE");
  if (device) CUDA(cudaSetDevice(atoi(device)));
  ncclComm_t comm = mode->alone ? NULL : join(0);
  const size_t wrong = mode->run(comm);
  if (wrong) say("FAILED: %zu operations were wrong", wrong);
  else say("ok");
  /* NCCL leaves threads behind where a communicator was aborted; nothing of them may change the status. Its log is a
   * file of stdio. */
  fflush(NULL);
  _exit(wrong ? 1 : 0);
}
