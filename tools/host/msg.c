/* Requests and replies as text: key=value pairs, %XX for what is not printable. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

static void room(struct text* t, size_t n) {
  if (t->len + n + 1 <= t->cap) return;
  while (t->len + n + 1 > t->cap) t->cap = t->cap ? t->cap * 2 : 256;
  t->s = realloc(t->s, t->cap);
  if (!t->s) abort();
}

void text_add(struct text* t, const char* fmt, ...) {
  va_list a, b;
  va_start(a, fmt);
  va_copy(b, a);
  const int n = vsnprintf(NULL, 0, fmt, a);
  va_end(a);
  room(t, (size_t)n);
  vsnprintf(t->s + t->len, (size_t)n + 1, fmt, b);
  va_end(b);
  t->len += (size_t)n;
}

void text_escaped(struct text* t, const char* s) {
  room(t, strlen(s) * 3);
  for (; *s; s++) {
    const unsigned char c = (unsigned char)*s;
    if (c > ' ' && c <= '~' && c != '%')
      t->s[t->len++] = *s;
    else
      t->len += (size_t)sprintf(t->s + t->len, "%%%02X", c);
  }
  t->s[t->len] = 0;
}

void text_hex(struct text* t, const void* p, size_t n) {
  static const char digits[] = "0123456789abcdef";
  room(t, 2 * n);
  for (size_t i = 0; i < n; i++) {
    const unsigned char c = ((const unsigned char*)p)[i];
    t->s[t->len++] = digits[c >> 4];
    t->s[t->len++] = digits[c & 15];
  }
  t->s[t->len] = 0;
}

static int hexval(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

static void unescape(char* s) {
  char* w = s;
  for (; *s; s++) {
    if (*s == '%' && hexval(s[1]) >= 0 && hexval(s[2]) >= 0) {
      *w++ = (char)(hexval(s[1]) << 4 | hexval(s[2]));
      s += 2;
    } else {
      *w++ = *s;
    }
  }
  *w = 0;
}

bool req_parse(struct req* q, char* line, bool addressed) {
  char *save = NULL, *word = strtok_r(line, " ", &save);
  q->line = line;
  if (addressed) {
    if (!word) return false;
    q->id = strtoull(word, NULL, 10);
    q->thread = strtok_r(NULL, " ", &save);
    word = strtok_r(NULL, " ", &save);
  } else {
    q->thread = me ? me->name : "main";
  }
  q->cmd = word;
  if (!q->thread || !q->cmd) return false;
  while ((word = strtok_r(NULL, " ", &save))) {
    char* eq = strchr(word, '=');
    if (!eq || q->argc == MAX_ARGS) return false;
    *eq = 0;
    unescape(eq + 1);
    q->key[q->argc] = word;
    q->val[q->argc++] = eq + 1;
  }
  return true;
}

const char* arg(const struct req* q, const char* key) {
  for (int i = q->argc - 1; i >= 0; i--) /* the last one counts */
    if (strcmp(q->key[i], key) == 0) return q->val[i];
  return NULL;
}

static int64_t number(const char* s) {
  return *s == '-' ? strtoll(s, NULL, 0) : (int64_t)strtoull(s, NULL, 0);
}

int64_t num(const struct req* q, const char* key, int64_t absent) {
  const char* s = arg(q, key);
  return s && *s ? number(s) : absent;
}

void* ptr(const struct req* q, const char* key) { return (void*)num(q, key, 0); }

const char* str(const struct req* q, const char* key, const char* absent) {
  const char* s = arg(q, key);
  return s ? s : absent;
}

int list(const struct req* q, const char* key, int64_t* v, int max) {
  const char* s = arg(q, key);
  int n = 0;
  while (s && *s && n < max) {
    v[n++] = number(s);
    s = strchr(s, ',');
    if (s) s++;
  }
  return n;
}

void out_num(struct req* q, const char* key, int64_t v) {
  text_add(&q->out, " %s=%lld", key, (long long)v);
}

void out_ptr(struct req* q, const char* key, const void* p) {
  text_add(&q->out, " %s=0x%llx", key, (unsigned long long)(uintptr_t)p);
}

void out_str(struct req* q, const char* key, const char* s) {
  text_add(&q->out, " %s=", key);
  text_escaped(&q->out, s ? s : "(null)");
}

void out_double(struct req* q, const char* key, double v) {
  text_add(&q->out, " %s=%.9g", key, v);
}

void fail(struct req* q, const char* code, const char* fmt, ...) {
  char msg[512];
  va_list a;
  va_start(a, fmt);
  vsnprintf(msg, sizeof msg, fmt, a);
  va_end(a);
  q->out.len = 0;
  q->code = code;
  out_str(q, "msg", msg);
}
