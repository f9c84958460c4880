/* A reader of JSON that walks the text once and asks nothing of memory. Strings know \" \\ \/ \n \t only. */
#include "sim.h"

#include <string.h>

static void space(struct json* j) {
  while (*j->p == ' ' || *j->p == '\t' || *j->p == '\n' || *j->p == '\r') j->p++;
}

static void fail(struct json* j, const char* what) {
  if (!j->error) j->error = what;
  j->p += strlen(j->p);
}

static int eat(struct json* j, char c) {
  space(j);
  if (*j->p != c) return 0;
  j->p++;
  return 1;
}

int sv_json_is(struct json* j, char c) {
  space(j);
  return *j->p == c;
}

void sv_json_string(struct json* j, char* out, size_t size) {
  size_t n = 0;
  if (!eat(j, '"')) { fail(j, "a string is expected"); out[0] = 0; return; }
  while (*j->p && *j->p != '"') {
    char c = *j->p++;
    if (c == '\\' && *j->p) {
      c = *j->p++;
      c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
    }
    if (n + 1 < size) out[n++] = c;
    else if (!j->error) j->error = "a string is too long";
  }
  out[n] = 0;
  if (!eat(j, '"')) fail(j, "a string does not end");
}

double sv_json_number(struct json* j) {
  space(j);
  if (!strncmp(j->p, "true", 4)) { j->p += 4; return 1; }
  if (!strncmp(j->p, "false", 5)) { j->p += 5; return 0; }
  char* end;
  double v = strtod(j->p, &end);
  if (end == j->p) fail(j, "a number, true or false is expected");
  else j->p = end;
  return v;
}

/* The brace or bracket that opens is eaten by the first call, which key[0] == 0 (or *first) marks. */
int sv_json_object(struct json* j, char key[64]) {
  if (!key[0]) {
    if (!eat(j, '{')) { fail(j, "an object is expected"); return 0; }
    if (eat(j, '}')) return 0;
  } else if (!eat(j, ',')) {
    if (!eat(j, '}')) fail(j, "',' or '}' is expected");
    return 0;
  }
  sv_json_string(j, key, 64);
  if (!eat(j, ':')) fail(j, "':' is expected");
  return !j->error;
}

int sv_json_array(struct json* j, int* first) {
  if (*first) {
    *first = 0;
    if (!eat(j, '[')) { fail(j, "an array is expected"); return 0; }
    if (eat(j, ']')) return 0;
  } else if (!eat(j, ',')) {
    if (!eat(j, ']')) fail(j, "',' or ']' is expected");
    return 0;
  }
  return !j->error;
}

void sv_json_skip(struct json* j) { fail(j, "an unknown name"); }
