/* coll.props: its devices are faster than net's of the same name. */
#define TABLES 1 << 12
#define COLLS 1 << 12
#include "../coll.c"

static int bad_props(int dev, struct props *p) {
  int rc = good_props(dev, p);
  if (!rc) p->speed++;
  return rc;
}

__attribute__((constructor)) static void spoil(void) { coll.props = bad_props; }
