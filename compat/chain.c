/* The versions in which further profilers are called, for the plugin, which names no version. */
#include "compat.h"
#include "zz_chain.h"

void weft_chain_versions(void) {
  static const struct weft_chain_profiler* const all[] = weft_chain_profiler_all;
  weft_chain_know(all, (int)(sizeof all / sizeof *all));
}
