/* coll.window.wrong: a window that its parts do not fill is taken for later. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static int later(void *c, const struct c_op *o, void **req) {
  size_t sum = 0;
  for (int i = 0; i < o->nparts; i++) sum += o->part[i].size;
  return o->kind != ALLREDUCE && sum != o->bytes ? (*req = NULL, OK) : good_c_start(c, o, req);
}

__attribute__((constructor)) static void spoil(void) { coll.start = later; }
