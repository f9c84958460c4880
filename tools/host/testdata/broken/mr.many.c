/* mr.many: a comm holds 256 registrations. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(void *comm, void *data, size_t size, int type, void **mh) {
  int held = 0;
  for (int i = 0; i < OBJECTS; i++) held += objects[i].kind == MR && ((struct mr *)objects[i].p)->comm == comm;
  if (held == 256) FAIL(SYSTEM, "regMr: too many");
  return good_regmr(comm, data, size, type, mh);
}
__attribute__((constructor)) static void spoil(void) { core.regmr = bad; }
