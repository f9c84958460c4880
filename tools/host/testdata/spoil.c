/* The good plugin, but now and then a byte changes between send and receive: what weft run must notice. */
#include "good.c"

static R spoil_isend(void *c, void *d, size_t size, int tag, void *mh, void *ph, void **req) {
  static int sends;
  unsigned char *middle = (unsigned char *)d + size / 2;
  const int spoils = size > 100 && (sends + 1) % 3 == 0;
  if (spoils) *middle ^= 1;
  R rc = isend10(c, d, size, tag, mh, ph, req);
  if (*req && size > 100) sends++;
  if (!*req && spoils) *middle ^= 1; /* not taken: the host comes again with the same buffer */
  return rc;
}

__attribute__((constructor)) static void spoil(void) { ncclNetPlugin_v12.isend = spoil_isend; }
