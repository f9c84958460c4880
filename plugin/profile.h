/* profile.h: who is told of the events of NCCL's profiler: this library's own record (profile.c), and further profilers
 * (chain.c, chain_events.c). */
#ifndef WEFT_PLUGIN_PROFILE_H
#define WEFT_PLUGIN_PROFILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chain.h"
#include "zz_chain.h"

#define CHAIN_MAX 4
#define TYPE_SHIFT 56 /* of an event's handle: above it is the number of its type, plus 1 */

/* The number of a type's bit. */
uint8_t weft_profile_number(uint64_t type);

/* Our own record; the handle is 0 where nothing is recorded. */
void weft_profile_start(uintptr_t context, uintptr_t* handle, ncclProfilerEventDescr_cur_t* descr);
void weft_profile_stop(uintptr_t handle);
void weft_profile_state(uintptr_t handle, ncclProfilerEventState_cur_t state, ncclProfilerEventStateArgs_cur_t* args);

/* A further profiler: what its library exports, and how that is called. */
struct chained {
	const struct weft_chain_profiler* as;
	const void* table;
	const char* name; /* its own */
	int mask;  /* of events that it wants. It has the address, and may change it at any time */
	int comms; /* that it has taken, and that have not ended */
};

/* A communicator as the profilers know it. */
struct chain_comm {
	int own;     /* events for our own record */
	int allowed; /* events that the host may be asked for */
	struct {
		_Atomic uintptr_t context;
		bool refused;
	} of[CHAIN_MAX];
	uint64_t id;
	char* name;
	int nodes, ranks, rank;
	uintptr_t logger; /* as long as init lasts */
	_Atomic bool ended;
	bool counted_out; /* of those that its profilers have */
	int host; /* 1 + the number of the host whose mask it is asked for by; 0: none */
};

/* Opens a library and chooses its table: the host's version, else the nearest older one, else the nearest newer one.
 * Returns the table's version. 0: why says what is wrong. Before the first communicator, from one thread. */
int weft_chain_open(const char* library, int host, const char** name, char* why, size_t room);

/* Begins communicator n, 1 to UINT16_MAX, whose own events are given, and those that its host may be asked for; 0, or
 * errno. weft_chain_init follows. */
int weft_chain_begin(int n, int own, int allowed, uint64_t id, const char* name, int nodes, int ranks, int rank,
	uintptr_t logger);

/* Tells hosts what profilers want by now. */
void weft_chain_poll(void);

/* How many profilers there are; 0 means that events go to our own record alone. */
extern int weft_chain_length;

/* chain.c for chain_events.c. */
extern struct chained weft_chain[CHAIN_MAX];
struct chain_comm* weft_chain_comm(uintptr_t context);
void weft_chain_about(const struct chain_comm* c);

/* Makes room for events; 0, or errno. Before the first. */
int weft_chain_room(void);

/* Events on their way to our own record and to each profiler. */
void weft_chain_start(uintptr_t context, uintptr_t* handle, ncclProfilerEventDescr_cur_t* descr);
void weft_chain_stop(uintptr_t handle);
void weft_chain_state(uintptr_t handle, ncclProfilerEventState_cur_t state, ncclProfilerEventStateArgs_cur_t* args);

/* Events that were forgotten, since too many had not ended. */
uint64_t weft_chain_forgotten(void);

#endif
