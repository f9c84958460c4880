/* coll.close.inflight: something is written after closeColl. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static void *write_late(void *to) { return usleep(50000), *(char *)to = 1, NULL; }
static int bad_closecoll(void *h) {
  struct c_comm *c = object_get(h, COLL, 0);
  pthread_t late;
  char *to = c && c->head != c->tail ? c->q[c->head % C_DEPTH].recv : NULL;
  int rc = good_c_closecoll(h);
  if (to) pthread_create(&late, NULL, write_late, to);
  return rc;
}

__attribute__((constructor)) static void spoil(void) { coll.closecoll = bad_closecoll; }
