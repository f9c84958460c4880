/* codes.legal: a bad device is ncclInvalidArgument. */
#define TABLES 1 << 12
#include "../good.c"

static int bad(int dev, struct props *p) {
  int rc = good_props(dev, p);
  return rc == INTERNAL ? (int)ncclInvalidArgument : rc;
}
__attribute__((constructor)) static void spoil(void) { core.props = bad; }
