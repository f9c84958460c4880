/* The good plugin, but now and then a byte changes between send and receive: what weft run must notice. */
#include "good.c"

static R spoil_isend(void *c, void *d, size_t size, int tag, void *mh, void *ph, void **req) {
  static int sends;
  if (size > 100 && ++sends % 3 == 0) ((unsigned char *)d)[size / 2] ^= 1;
  return isend10(c, d, size, tag, mh, ph, req);
}

__attribute__((constructor)) static void spoil(void) { ncclNetPlugin_v12.isend = spoil_isend; }
