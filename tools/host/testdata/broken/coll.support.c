/* coll.support: it says that it multiplies int32, and does so wrong. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static void wrong(void *a, const void *b, size_t n, int type, int op) {
  c_combine(a, b, n, type, op);
  if (type == 2 && op == 1 && n) ((int32_t *)a)[n - 1]++;
}

__attribute__((constructor)) static void spoil(void) { c_reduce = wrong; }
