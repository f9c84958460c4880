/* A ring of ranks: float32 all-reduce, and the broadcast of a file.
 *
 * Data moves in pieces, received in groups of up to `group` with a tag each and sent
 * in the reverse order of their group, so that only the tags bring them home. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"

enum { IN_FLIGHT = 4, MAX_SLOTS = 32 };

struct ring {
  const struct table* t;
  struct req* q;
  struct clock clock;
  void *send, *recv, *smh, *rmh;
  char* scratch; /* IN_FLIGHT * group pieces */
  int64_t piece, lag; /* lag: microseconds before what has come is taken */
  int group, rank, nranks;
  bool failed;
};

static bool ring_read(struct ring* r, struct req* q) {
  *r = (struct ring){.t = table_of(q, "net"), .q = q, .send = ptr(q, "send"), .recv = ptr(q, "recv"),
                     .smh = ptr(q, "smh"), .rmh = ptr(q, "rmh"), .scratch = ptr(q, "scratch"),
                     .piece = num(q, "piece", 262144), .lag = num(q, "lag", 0), .group = (int)num(q, "group", 1),
                     .rank = (int)num(q, "rank", 0), .nranks = (int)num(q, "nranks", 1)};
  clock_start(&r->clock, q);
  if (r->t && r->t->version < SINCE_GROUPS) r->group = 1;
  if (r->t && r->group >= 1 && r->group <= MAX_SLOTS / IN_FLIGHT && r->nranks > 0) return true;
  if (r->t) fail(q, "usage", "group is 1 to %d, nranks at least 1", MAX_SLOTS / IN_FLIGHT);
  return false;
}

static bool stop(struct ring* r, const char* slot, int rc) {
  if (rc != 0) loop_failed(r->q, slot, rc);
  r->failed = rc != 0 || r->failed;
  return r->failed;
}

/* One step: slen bytes to the next rank, rlen from the previous one; -1: no message.
 * Arrived pieces go to `to` directly, or through scratch to be added to `own` into `to`. */
static bool exchange(struct ring* r, char* from, int64_t slen, char* to, const float* own, int64_t rlen) {
  const int64_t p = r->piece, g = r->group;
  const int64_t ns = slen ? (slen + p - 1) / p : 1, nr = rlen ? (rlen + p - 1) / p : 1; /* -1: 0 */
  int64_t sent = 0, sdone = 0, posted = 0, done = 0; /* pieces */
  void *sreq[MAX_SLOTS], *rreq[MAX_SLOTS];
  uint32_t idle = 0;
  while (sdone < ns || done < nr) {
    bool moved = false;
    if (posted < nr && posted - done < IN_FLIGHT * g) {
      void *data[MAX_GROUP], *mh[MAX_GROUP], *ph[MAX_GROUP] = {0}, *req = NULL;
      int64_t sizes[MAX_GROUP];
      int tags[MAX_GROUP];
      const int n = (int)(nr - posted < g ? nr - posted : g);
      for (int i = 0; i < n; i++) {
        const int64_t k = posted + i, left = rlen - k * p;
        data[i] = own ? r->scratch + k % (IN_FLIGHT * g) * p : to + k * p;
        sizes[i] = own || left > p ? p : left; /* NCCL posts a whole step too */
        tags[i] = 100 + (int)(k % 1000);
        mh[i] = r->rmh;
      }
      if (stop(r, "irecv", LOOP("irecv", r->t->irecv(r->t, r->recv, n, data, sizes, tags, mh, ph, &req))))
        return false;
      if (req) {
        rreq[posted / g % IN_FLIGHT] = req;
        posted += n;
        moved = true;
      }
    }
    if (done < posted) {
      int ok = 0, sizes[MAX_GROUP] = {0};
      const int n = (int)(nr - done < g ? nr - done : g);
      if (stop(r, "test of irecv", LOOP("test\0", net_test(r->t, rreq[done / g % IN_FLIGHT], &ok, sizes))))
        return false;
      if (ok && r->lag > 0) usleep((useconds_t)r->lag);
      for (int i = 0; ok && i < n; i++, done++) {
        const int64_t left = rlen - done * p, want = left > p ? p : left;
        if (sizes[i] != want) {
          fail(r->q, "fault", "piece %lld arrived with %d bytes instead of %lld", (long long)done,
               sizes[i], (long long)want);
          return false;
        }
        if (!own) continue;
        const float* add = (const float*)(const void*)(r->scratch + done % (IN_FLIGHT * g) * p);
        const float* mine = own + done * p / 4;
        float* sum = (float*)(void*)(to + done * p);
        for (int64_t j = 0; j < want / 4; j++) sum[j] = mine[j] + add[j];
      }
      moved |= ok;
    }
    if (sent < ns && sent - sdone < IN_FLIGHT * g) {
      const int64_t first = sent / g * g, last = first + g < ns ? first + g : ns;
      const int64_t k = last - 1 - (sent - first), left = slen - k * p;
      void* req = NULL;
      if (stop(r, "isend", LOOP("isend", r->t->isend(r->t, r->send, from + k * p, left > p ? p : left,
                                                     100 + (int)(k % 1000), r->smh, NULL, &req))))
        return false;
      if (req) {
        sreq[sent % MAX_SLOTS] = req;
        sent++;
        moved = true;
      }
    }
    if (sdone < sent) {
      int ok = 0, size[MAX_GROUP];
      if (stop(r, "test of isend", LOOP("test\0", net_test(r->t, sreq[sdone % MAX_SLOTS], &ok, size))))
        return false;
      sdone += ok;
      moved |= ok;
    }
    if (moved) {
      idle = 0;
      continue;
    }
    sched_yield();
    if ((++idle & 255) == 0 && clock_late(&r->clock, r->q)) return false;
  }
  return true;
}

/* Nobody leaves before everybody has entered. */
static bool barrier(struct ring* r) {
  for (int s = 0; s < r->nranks - 1; s++)
    if (!exchange(r, r->scratch, 4, r->scratch + 64, NULL, 4)) return false;
  return true;
}

/* Values whose sum over up to 4096 ranks is exact in float32. */
static float value(int64_t i, int rank, uint32_t seed) {
  return (float)(((uint32_t)i * 2654435761U + (uint32_t)rank * 0x9E3779B1U + seed) >> 20);
}

static void fill(float* in, int64_t count, int rank, uint32_t seed) {
  for (int64_t i = 0; i < count; i++) in[i] = value(i, rank, seed);
}

static int64_t verify(const float* out, int64_t count, int nranks, uint32_t seed, int64_t* first) {
  int64_t wrong = 0;
  for (int64_t i = 0; i < count; i++) {
    float want = 0;
    for (int k = 0; k < nranks; k++) want += value(i, k, seed);
    if (out[i] != want && wrong++ == 0) *first = i;
  }
  return wrong;
}

static bool allreduce(struct ring* r, float* in, float* out, int64_t count) {
  const int n = r->nranks;
  if (n == 1) memcpy(out, in, (size_t)count * 4);
#define AT(c) (count * (((c) % n + n) % n) / n)
#define LEN(c) ((count * ((((c) % n + n) % n) + 1) / n - AT(c)) * 4)
  for (int s = 0; s < n - 1; s++) {
    const int cs = r->rank - s, cr = cs - 1;
    if (!exchange(r, (char*)((s ? out : in) + AT(cs)), LEN(cs), (char*)(out + AT(cr)), in + AT(cr), LEN(cr)))
      return false;
  }
  for (int s = 0; s < n - 1; s++) {
    const int cs = r->rank + 1 - s, cr = cs - 1;
    if (!exchange(r, (char*)(out + AT(cs)), LEN(cs), (char*)(out + AT(cr)), NULL, LEN(cr)))
      return false;
  }
#undef AT
#undef LEN
  return true;
}

static void c_allreduce(struct req* q) {
  struct ring r;
  if (!ring_read(&r, q)) return;
  float *in = ptr(q, "in"), *out = ptr(q, "out");
  const int64_t count = num(q, "count", 0), warm = num(q, "warm", 1), iters = num(q, "iters", 1);
  int64_t wrong = 0, first = -1, total = 0, min = INT64_MAX, max = 0;
  for (int64_t it = 0; it < warm + iters; it++) {
    const uint32_t seed = (uint32_t)(num(q, "seed", 1) + it * 7919);
    fill(in, count, r.rank, seed);
    memset(out, 0xff, (size_t)count * 4);
    if (!barrier(&r)) return;
    const int64_t t0 = now_ns();
    if (!allreduce(&r, in, out, count)) return;
    const int64_t t = now_ns() - t0;
    wrong += verify(out, count, r.nranks, seed, &first);
    if (it < warm) continue;
    total += t;
    min = t < min ? t : min;
    max = t > max ? t : max;
  }
  if (!barrier(&r)) return;
  out_double(q, "us", (double)total / 1000);
  out_double(q, "min", (double)min / 1000);
  out_double(q, "max", (double)max / 1000);
  out_num(q, "wrong", wrong);
  out_num(q, "first", first);
  out_num(q, "iters", iters);
}

/* The file goes down the ring from rank 0, a block a step: in step s rank k sends
 * block s-k and receives the one behind it. Every rank writes what it has to `save`. */
static void c_broadcast(struct req* q) {
  struct ring r;
  if (!ring_read(&r, q)) return;
  const int64_t block = r.piece * r.group, size = num(q, "size", 0), last = r.nranks - 1;
  const int64_t blocks = size ? (size + block - 1) / block : 1;
  const int fd = r.rank == 0 ? open(str(q, "path", ""), O_RDONLY | O_CLOEXEC) : -1;
  if (r.rank == 0 && fd < 0) return fail(q, "usage", "%s: %s", str(q, "path", ""), strerror(errno));
  const int save = open(str(q, "save", "/dev/null"), O_WRONLY | O_CLOEXEC);
  for (int64_t s = -1; s < blocks + last; s++) {
    const int64_t out = s - r.rank, in = out + 1;
    char *from = r.scratch + (out & 1) * block, *to = r.scratch + (in & 1) * block;
    const int64_t left = size - in * block, bytes = left < block ? left : block;
    const bool sends = out >= 0 && out < blocks && r.rank < last, gets = in >= 0 && in < blocks;
    if (gets && r.rank == 0 && pread(fd, to, (size_t)bytes, in * block) != bytes) {
      fail(q, "usage", "%s changed while it was read", str(q, "path", ""));
      break;
    }
    const int64_t rest = size - out * block, going = rest < block ? rest : block;
    if (!exchange(&r, from, sends ? going : -1, to, NULL, gets && r.rank ? bytes : -1)) break;
    for (int64_t at = 0; gets && at < bytes;) {
      const ssize_t n = write(save, to + at, (size_t)(bytes - at));
      if (n <= 0) {
        fail(q, "usage", "%s: %s", str(q, "save", ""), strerror(errno));
        goto end;
      }
      at += n;
    }
  }
end:
  if (fd >= 0) close(fd);
  if (save >= 0) close(save);
  if (r.failed || q->code) return;
  out_double(q, "us", (double)(now_ns() - r.clock.t0) / 1000);
}

const struct command ring_commands[] = {
    {"ring.allreduce", c_allreduce}, {"ring.broadcast", c_broadcast}, {NULL, NULL}};
