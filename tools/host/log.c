/* What the host hands to plugins: NCCL's logger and the network profiler's callback. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "host.h"

struct prof_counts prof_counts;

void host_logger(ncclDebugLogLevel level, unsigned long flags, const char* file, int line,
                 const char* fmt, ...) {
  char* msg = NULL;
  va_list a;
  va_start(a, fmt);
  if (vasprintf(&msg, fmt, a) < 0) msg = NULL;
  va_end(a);
  struct text t = {0};
  text_add(&t, "- log level=%d flags=0x%lx line=%d thread=", (int)level, flags, line);
  text_escaped(&t, me ? me->name : "(other)");
  text_add(&t, " func=");
  text_escaped(&t, file ? file : "(null)");
  text_add(&t, " text=");
  text_escaped(&t, msg ? msg : "(null)");
  text_add(&t, "\n");
  line_write(t.s, t.len);
  free(t.s);
  free(msg);
}

/* Hands out numbers as event handles, and counts; like NCCL's own it needs the
 * parent handle. */
ncclResult_t host_profiler(void** eHandle, int type, void* pHandle, int64_t pluginId,
                           void* extData) {
  static uint64_t next;
  (void)pluginId;
  (void)extData;
  if (!pHandle) __atomic_fetch_add(&prof_counts.null_handle, 1, __ATOMIC_RELAXED);
  switch (type) {
    case 0:
      *eHandle = (void*)(uintptr_t)(__atomic_add_fetch(&next, 1, __ATOMIC_RELAXED) << 4);
      __atomic_fetch_add(&prof_counts.start, 1, __ATOMIC_RELAXED);
      break;
    case 1:
      __atomic_fetch_add(&prof_counts.stop, 1, __ATOMIC_RELAXED);
      break;
    default:
      __atomic_fetch_add(&prof_counts.update, 1, __ATOMIC_RELAXED);
      if (type == 3) __atomic_fetch_add(&prof_counts.stop, 1, __ATOMIC_RELAXED);
      break;
  }
  return ncclSuccess;
}
