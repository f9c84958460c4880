/* chain.h: further profilers, as the shims of the profiler tables see them. */
#ifndef WEFT_PLUGIN_CHAIN_H
#define WEFT_PLUGIN_CHAIN_H

#include <stdint.h>

/* Which versions of their tables there are, the newest first. */
struct weft_chain_profiler;
void weft_chain_know(const struct weft_chain_profiler* const* versions, int count);

/* Has them begin and end what the host begins and ends, on the host's thread and outside of Go. */
void weft_chain_init(uintptr_t context, int* mask);
void weft_chain_finalize(uintptr_t context);

/* What tables before v4 say of the communicator with each event. */
void weft_chain_says(const char* name, uint64_t hash);
const char* weft_chain_name(void);
uint64_t weft_chain_hash(void);

/* And of a proxy's operation with its state: steps done. */
void weft_chain_moves(int steps);
int weft_chain_steps(void);

#endif
