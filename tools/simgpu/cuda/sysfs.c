/* Where the devices would be in /sys. Releases up to 2.9 do not go on unless they find them there; so they are
 * linked with --wrap for the three functions by which they look. */
#define _GNU_SOURCE
#include "simcuda.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

char* __real_realpath(const char* path, char* out);
char* __wrap_realpath(const char* path, char* out);
FILE* __real_fopen(const char* path, const char* mode);
FILE* __wrap_fopen(const char* path, const char* mode);
int __real_open(const char* path, int flags, ...);
int __wrap_open(const char* path, int flags, ...);

/* Each device is below a port of its own. */
#define ROOT "/sys/devices/pci0000:40/0000:40:"

static bool is_device(unsigned bus) { return bus >= FIRST_BUS && bus < FIRST_BUS + (unsigned)device_count(); }

static bool place(const char* path, char* out, size_t n) {
  unsigned bus;
  int end = 0;
  if (sscanf(path, "/sys/class/pci_bus/0000:%*2x/../../0000:%2x:00.0%n", &bus, &end) != 1 || !end || path[end] ||
      !is_device(bus))
    return false;
  return snprintf(out, n, ROOT "%02x.0/0000:%02x:00.0", bus - FIRST_BUS + 1, bus) < (int)n;
}

char* __wrap_realpath(const char* path, char* out) {
  char made[64];
  char* there = __real_realpath(path, out);
  if (there || !place(path, made, sizeof made)) return there;
  return out ? strcpy(out, made) : strdup(made);
}

static const struct {
  const char *name, *text;
} files[] = {
    {"class", "0x030200\n"},       {"vendor", "0x10de\n"},           {"device", "0x20b0\n"},
    {"numa_node", "0\n"},          {"subsystem_vendor", "0x10de\n"}, {"subsystem_device", "0x134f\n"},
    {"max_link_width", "16\n"},    {"../max_link_width", "16\n"},    {"max_link_speed", "16 GT/s\n"},
    {"../max_link_speed", "16 GT/s\n"}, {"local_cpus", "ffffffff,ffffffff\n"}};
enum { FILES = sizeof files / sizeof *files };

/* path may be NULL: NCCL opens what realpath has not found. */
static const char* text_of(const char* path) {
  unsigned bus;
  int end = 0;
  if (!path || sscanf(path, ROOT "%*2x.0/0000:%2x:00.0/%n", &bus, &end) != 1 || !end || !is_device(bus)) return NULL;
  for (int i = 0; i < FILES; i++)
    if (!strcmp(path + end, files[i].name)) return files[i].text;
  return NULL;
}

FILE* __wrap_fopen(const char* path, const char* mode) {
  const char* text = text_of(path);
  return text ? fmemopen((void*)(uintptr_t)text, strlen(text), "r") : __real_fopen(path, mode);
}

int __wrap_open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int mode = va_arg(rest, int);
  va_end(rest);
  const char* text = text_of(path);
  if (!text) return __real_open(path, flags, mode);
  const int fd = memfd_create("simgpu", MFD_CLOEXEC);
  if (fd >= 0 && pwrite(fd, text, strlen(text), 0) < 0) {
    close(fd);
    return -1;
  }
  return fd;
}
