/* coll.two: one operation at a time in the whole process. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
static int perform(struct c_comm *c, const struct c_op *o) {
  pthread_mutex_lock(&one);
  int rc = good_c_perform(c, o);
  pthread_mutex_unlock(&one);
  return rc;
}

__attribute__((constructor)) static void spoil(void) { c_perform = perform; }
