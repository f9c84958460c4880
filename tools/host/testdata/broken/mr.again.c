/* mr.again: memory is registered once. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm, void *data, size_t size, int type, void **mh) {
  for (int i = 0; i < OBJECTS; i++) {
    struct mr *m = objects[i].kind == MR ? objects[i].p : NULL;
    if (m && m->comm == comm && (char *)data >= m->base && (char *)data < m->base + m->size) FAIL(INTERNAL, "regMr: registered already");
  }
  return good_regmr(comm, data, size, type, mh);
}
__attribute__((constructor)) static void spoil(void) { core.regmr = bad; }
