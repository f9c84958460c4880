/* meter.h: what a process counts of its connections, in a file that is mapped into memory, so that it can be read at
 * any moment and after the process was killed.
 *
 * The file is a header and places of one page. A connection has a place while it is open, into which the thread that
 * moves its messages writes, alone, with plain stores; who reads may see a message's bytes before its time. What a
 * closed connection has counted stays, in its place or added to that of another between the same ends: a sum never
 * falls. While places are moved together the header's turns is odd.
 *
 * What reads such files is Go without C: format/format.go has the same layout, and layout.go compares them. */
#ifndef WEFT_METER_H
#define WEFT_METER_H

#include <stdint.h>

#define WEFT_METER_VERSION 1
#define WEFT_METER_PLACES 2048
#define WEFT_METER_LANES 32
#define WEFT_METER_BUCKETS 256
#define WEFT_METER_TEXT 64

struct weft_meter_place {
	/* of the core */
	uint32_t state;
	uint32_t flags;
	uint64_t number;
	uint64_t opened;
	uint32_t peer_pid;
	uint32_t lanes; /* of the owner, as all that follows the texts but for closed and broken */
	char device[WEFT_METER_TEXT];
	char peer[WEFT_METER_TEXT];
	char peer_device[WEFT_METER_TEXT];
	uint64_t since; /* a send has waited for its receive since then, ns; 0: none does */
	uint64_t pad[3];

	/* sums */
	uint64_t begun;
	uint64_t messages;
	uint64_t bytes;
	uint64_t failed;
	uint64_t time; /* ns, of all messages */
	uint64_t waits;
	uint64_t waited; /* ns */
	uint64_t closed; /* of the core */
	uint64_t broken; /* of the core */
	uint64_t pad1[23];
	uint64_t lane_bytes[WEFT_METER_LANES];
	uint64_t pad2[160];
	uint64_t bucket[WEFT_METER_BUCKETS]; /* messages by their time, see weft_meter_bucket */
};

_Static_assert(sizeof(struct weft_meter_place) == 4096, "a page each");

/* The first page. What is not named here is as in the recorder's, transport/record. */
struct weft_meter_file {
	char magic[8]; /* "weftmet" */
	uint32_t version;
	uint32_t places;
	uint32_t place_bytes;
	char process[188];
	uint64_t turns;
	uint64_t uncounted; /* connections that found no place */
	uint32_t used;      /* places above were never used */
	uint32_t rank;      /* from 1; 0: not known */
	uint32_t ranks;
	uint32_t stalled; /* waits that were told and last */
	char life[24];    /* of the process, too */
	uint64_t stalls;  /* waits that were told */
	char pad[3824];
	struct weft_meter_place place[WEFT_METER_PLACES];
};

extern uint32_t weft_meter_on; /* 1: connections are counted */

static inline int weft_metering(void) { return __atomic_load_n(&weft_meter_on, __ATOMIC_RELAXED) != 0; }

/* A bucket for each eighth of a power of two from 64 ns on; less is in the first, 4 minutes and more in the last. */
uint32_t weft_meter_bucket(uint64_t ns);

/* What the place's owner says. Times are CLOCK_MONOTONIC, ns. */
void weft_meter_begin(struct weft_meter_place* p, uint64_t messages, uint64_t now);
void weft_meter_end(struct weft_meter_place* p, uint64_t messages, uint64_t bytes, uint64_t took);
void weft_meter_fail(struct weft_meter_place* p, uint64_t messages);
void weft_meter_lane(struct weft_meter_place* p, uint32_t lane, uint64_t bytes);
int weft_meter_waiting(struct weft_meter_place* p); /* 1: that a send waits has been said */
void weft_meter_wait(struct weft_meter_place* p, uint64_t now);

#endif
