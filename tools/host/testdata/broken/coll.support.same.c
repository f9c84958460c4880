/* coll.support.same: only the first process of several says that it multiplies doubles. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

#include <sys/un.h>

/* The first has the name until it ends. */
static int first(void) {
  static int is = -1;
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  if (is >= 0) return is;
  snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "weft-first-%d", (int)getppid());
  return is = bind(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), (void *)&a, sizeof a) == 0;
}
static int support(int type, int op, int *yes) {
  int rc = good_c_support(type, op, yes);
  if (type == 8 && op == 1) *yes = first();
  return rc;
}

__attribute__((constructor)) static void spoil(void) { coll.support = support; }
