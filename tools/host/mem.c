/* Memory for the plugin to read and write: guarded, patterned, checked. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host.h"

struct area {
  struct area* next;
  char *base, *addr;
  size_t len; /* of the mapping, guards included */
  int fd;
};
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER; /* protects areas */
static struct area* areas;

static size_t pages(size_t n) { return (n + 4095) & ~(size_t)4095; }

static void remember(char* base, char* addr, size_t len, int fd) {
  struct area* a = malloc(sizeof *a);
  if (!a) abort();
  *a = (struct area){.base = base, .addr = addr, .len = len, .fd = fd};
  pthread_mutex_lock(&mu);
  a->next = areas;
  areas = a;
  pthread_mutex_unlock(&mu);
}

static void c_alloc(struct req* q) {
  const size_t size = (size_t)num(q, "size", 0), body = pages(size ? size : 1);
  const size_t guard = num(q, "guard", 0) ? 4096 : 0, len = body + 2 * guard;
  const bool shared = num(q, "shared", 0) != 0;
  int fd = -1;
  char* base = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base != MAP_FAILED && shared) {
    fd = memfd_create("weft-host", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)body) != 0) base = MAP_FAILED;
  }
  if (base == MAP_FAILED ||
      mmap(base + guard, body, PROT_READ | PROT_WRITE,
           MAP_FIXED | (shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS), fd, 0) == MAP_FAILED) {
    fail(q, "nomem", "%zu bytes: %s", size, strerror(errno));
    return;
  }
  char* addr = base + guard + (num(q, "end", 0) ? body - size : 0);
  remember(base, addr, len, fd);
  out_ptr(q, "addr", addr);
  out_num(q, "fd", fd);
}

static void c_free(struct req* q) {
  const char* addr = ptr(q, "addr");
  pthread_mutex_lock(&mu);
  struct area** at = &areas;
  while (*at && (*at)->addr != addr) at = &(*at)->next;
  struct area* a = *at;
  if (a) *at = a->next;
  pthread_mutex_unlock(&mu);
  if (!a) {
    fail(q, "usage", "no memory of the host at %p", (const void*)addr);
    return;
  }
  munmap(a->base, a->len);
  if (a->fd >= 0) close(a->fd);
  free(a);
}

/* A memfd that /dev/udmabuf turns into a dma-buf, as a driver would export one. */
static void c_dmabuf(struct req* q) {
  const size_t size = pages((size_t)num(q, "size", 4096));
  const int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
  const int mem = memfd_create("weft-dmabuf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  int fd = -1;
  if (dev >= 0 && mem >= 0 && ftruncate(mem, (off_t)size) == 0 && fcntl(mem, F_ADD_SEALS, F_SEAL_SHRINK) == 0) {
    struct udmabuf_create c = {.memfd = (uint32_t)mem, .flags = UDMABUF_FLAGS_CLOEXEC, .size = size};
    fd = ioctl(dev, UDMABUF_CREATE, &c);
  }
  const int why = errno;
  char* addr = fd < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, mem, 0);
  if (dev >= 0) close(dev);
  if (mem >= 0) close(mem);
  if (addr == MAP_FAILED) {
    fail(q, "noslot", "no dma-buf from /dev/udmabuf: %s", strerror(why));
    return;
  }
  remember(addr, addr, size, fd);
  out_ptr(q, "addr", addr);
  out_num(q, "fd", fd);
}

uint64_t pattern_word(uint64_t seed, uint64_t i) {
  uint64_t z = (seed + i) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

void pattern_fill(void* p, size_t n, uint64_t seed) {
  char* c = p;
  for (size_t i = 0; i < n; i += 8) {
    const uint64_t w = pattern_word(seed, i / 8);
    memcpy(c + i, &w, n - i < 8 ? n - i : 8);
  }
}

size_t pattern_check(const void* p, size_t n, uint64_t seed, int64_t* first) {
  const char* c = p;
  size_t bad = 0;
  for (size_t i = 0; i < n; i += 8) {
    const uint64_t w = pattern_word(seed, i / 8);
    const size_t k = n - i < 8 ? n - i : 8;
    if (memcmp(c + i, &w, k) == 0) continue;
    for (size_t j = 0; j < k; j++)
      if (c[i + j] != ((const char*)&w)[j] && bad++ == 0 && first) *first = (int64_t)(i + j);
  }
  return bad;
}

static void c_fill(struct req* q) {
  const size_t size = (size_t)num(q, "size", 0);
  if (arg(q, "byte"))
    memset(ptr(q, "addr"), (int)num(q, "byte", 0), size);
  else
    pattern_fill(ptr(q, "addr"), size, (uint64_t)num(q, "seed", 0));
}

static void c_check(struct req* q) {
  const size_t size = (size_t)num(q, "size", 0);
  const unsigned char* p = ptr(q, "addr");
  int64_t first = -1;
  size_t bad = 0;
  if (arg(q, "byte")) {
    const int b = (int)num(q, "byte", 0);
    for (size_t i = 0; i < size; i++)
      if (p[i] != b && bad++ == 0) first = (int64_t)i;
  } else {
    bad = pattern_check(p, size, (uint64_t)num(q, "seed", 0), &first);
  }
  out_num(q, "bad", (int64_t)bad);
  out_num(q, "first", first);
}

static void c_read(struct req* q) {
  text_add(&q->out, " hex=");
  text_hex(&q->out, ptr(q, "addr"), (size_t)num(q, "size", 0));
}

static void c_write(struct req* q) {
  const char* hex = str(q, "hex", "");
  char* p = ptr(q, "addr");
  for (; hex[0] && hex[1]; hex += 2) {
    const char digits[3] = {hex[0], hex[1], 0};
    *p++ = (char)strtoul(digits, NULL, 16);
  }
}

static void c_protect(struct req* q) {
  const uintptr_t a = (uintptr_t)ptr(q, "addr"), from = a & ~(uintptr_t)4095;
  const size_t len = pages((size_t)num(q, "size", 4096) + (a - from));
  if (mprotect((void*)from, len, (int)num(q, "prot", 0)) != 0)
    fail(q, "usage", "mprotect: %s", strerror(errno));
}

/* Other memory at the same addresses, as an allocator maps it that has given the old one back. */
static void c_remap(struct req* q) {
  void* at = mmap(ptr(q, "addr"), (size_t)num(q, "size", 0), PROT_READ | PROT_WRITE,
                  MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) fail(q, "usage", "mmap: %s", strerror(errno));
}

const struct command mem_commands[] = {
    {"mem.alloc", c_alloc},   {"mem.free", c_free}, {"mem.dmabuf", c_dmabuf},
    {"mem.fill", c_fill},     {"mem.check", c_check}, {"mem.read", c_read},
    {"mem.write", c_write},   {"mem.protect", c_protect}, {"mem.remap", c_remap},
    {NULL, NULL}};
