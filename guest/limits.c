/* limits.c: whether the process has room for Go, and which of its limits is in the way. */
#define _GNU_SOURCE
#include "inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define MIB (1ull << 20)

/* Appends to text, and cuts what does not fit. */
static void __attribute__((format(printf, 3, 4))) add(char* text, size_t size, const char* format, ...) {
  size_t used = strlen(text);
  va_list a;
  va_start(a, format);
  vsnprintf(text + used, size - used, format, a);
  va_end(a);
}

/* 0: the process can map that much more; else errno. */
static int lacks(size_t bytes, int protection) {
  void* p = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? errno : munmap(p, bytes) ? errno : 0;
}

static unsigned long long limit(int resource) {
  struct rlimit l;
  return getrlimit(resource, &l) ? RLIM_INFINITY : l.rlim_cur;
}

/* The beginning of a file; empty when it cannot be read. */
static char* content(const char* folder, const char* name, char* text, size_t size) {
  char path[512];
  ssize_t n = -1;
  int fd = -1;
  if (snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path) fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    n = read(fd, text, size - 1);
    close(fd);
  }
  text[n < 0 ? 0 : n] = 0;
  return text;
}

/* The number that a file begins with; 0 when it does not, as with "max". */
static unsigned long long number(const char* folder, const char* name) {
  char text[32];
  unsigned long long n = 0;
  for (const char* c = content(folder, name, text, sizeof text); *c >= '0' && *c <= '9'; c++)
    n = n * 10 + (unsigned)(*c - '0');
  return n;
}

/* 1: that much memory cannot be had, and text names what is in the way. */
static int no_memory(char* text, size_t size, size_t bytes, int protection) {
  int err = lacks(bytes, protection);
  if (!err) return 0;
  unsigned long long space = limit(RLIMIT_AS), data = limit(RLIMIT_DATA), locked = limit(RLIMIT_MEMLOCK);
  unsigned long long pages = number("/proc/self", "statm");
  if (err == EAGAIN) /* the errno of mlockall(MCL_FUTURE) alone */
    add(text, size, "; all memory is to be locked (mlockall), and RLIMIT_MEMLOCK is %llu MiB: raise it (ulimit -l)",
      locked / MIB);
  else if (lacks(bytes, PROT_NONE) && space != RLIM_INFINITY)
    add(text, size, "; RLIMIT_AS is %llu MiB and %llu are used: raise it (ulimit -v)", space / MIB,
      pages * (size_t)getpagesize() / MIB);
  else if (protection != PROT_NONE && data != RLIM_INFINITY)
    add(text, size, "; RLIMIT_DATA is %llu MiB: raise it (ulimit -d)", data / MIB);
  else
    add(text, size, "; no limit of the process is in the way: "
      "look at vm.overcommit_memory, vm.max_map_count and memory");
  return 1;
}

int guest_room(char* text, size_t size) {
  snprintf(text, size, "init: weft needs %llu MiB of address space, %llu of them to write to, "
    "and the process cannot have them", GUEST_SPACE / MIB, GUEST_DATA / MIB);
  if (no_memory(text, size, GUEST_SPACE, PROT_NONE)) return -1;
  return no_memory(text, size, GUEST_DATA, PROT_READ | PROT_WRITE) ? -1 : 0;
}

/* The control group that is full of threads: this process's, or one above it. 1: folder and most name it. */
static int full_group(char* folder, size_t size, unsigned long long* most) {
  char text[4096], *next = content("/proc/self", "cgroup", text, sizeof text);
  while (next && *next) { /* "0::/path", or in version 1 "N:...pids...:/path" */
    char* line = next;
    if ((next = strchr(line, '\n'))) *next++ = 0;
    char* names = strchr(line, ':');
    char* path = names ? strchr(names + 1, ':') : NULL;
    if (!path) continue;
    *path++ = 0;
    int second = !names[1];
    if (!second && !strstr(names, "pids")) continue;
    if (snprintf(folder, size, "/sys/fs/cgroup%s%s", second ? "" : "/pids", path) >= (int)size) continue;
    for (;;) {
      *most = number(folder, "pids.max");
      if (*most && number(folder, "pids.current") + 1 >= *most) return 1;
      char* end = strrchr(folder, '/');
      if (end <= folder + strlen("/sys/fs")) break;
      *end = 0;
    }
  }
  return 0;
}

void guest_no_thread(char* text, size_t size, int have, int want) {
  char folder[512];
  unsigned long long most, user = limit(RLIMIT_NPROC);
  snprintf(text, size, "init: weft needs %d threads, and only %d could be created", want, have);
  if (no_memory(text, size, GUEST_STACK, PROT_READ | PROT_WRITE)) return;
  if (full_group(folder, sizeof folder, &most)) {
    add(text, size, "; pids.max of %s is %llu: raise it (TasksMax, --pids-limit)", folder, most);
    return;
  }
  if (user != RLIM_INFINITY)
    add(text, size, "; RLIMIT_NPROC is %llu for all threads of this user, unless it is root: "
      "raise it (ulimit -u), or end some; else", user);
  else add(text, size, ";");
  add(text, size, " look at kernel.threads-max, %llu for the machine, kernel.pid_max and memory",
    number("/proc/sys/kernel", "threads-max"));
}
