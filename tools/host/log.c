/* What the host hands to plugins: NCCL's logger. */
#define _GNU_SOURCE
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "host.h"

static int most = INT_MAX; /* the last level that the host takes */

void host_logger(ncclDebugLogLevel level, unsigned long flags, const char* file, int line,
                 const char* fmt, ...) {
  if ((int)level > __atomic_load_n(&most, __ATOMIC_RELAXED)) return;
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

static void c_most(struct req* q) {
  __atomic_store_n(&most, (int)num(q, "level", INT_MAX), __ATOMIC_RELAXED);
}

const struct command log_commands[] = {{"log.most", c_most}, {NULL, NULL}};
