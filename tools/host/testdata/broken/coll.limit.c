/* coll.limit: maxCollBytes is 0. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static int bad_props(int dev, struct props *p) {
  int rc = good_props(dev, p);
  if (!rc) p->coll = 0;
  return rc;
}

__attribute__((constructor)) static void spoil(void) { coll.props = bad_props; }
