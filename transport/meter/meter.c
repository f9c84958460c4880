/* meter.c: see meter.h. */
#include "meter.h"

#define LEAST_OCTAVE 6 /* 64 ns */

uint32_t weft_meter_on;

static void add(uint64_t* sum, uint64_t more) {
	__atomic_store_n(sum, __atomic_load_n(sum, __ATOMIC_RELAXED) + more, __ATOMIC_RELAXED);
}

uint32_t weft_meter_bucket(uint64_t ns) {
	if (!(ns >> LEAST_OCTAVE)) return 0;
	uint32_t octave = 63u - (uint32_t)__builtin_clzll(ns);
	uint32_t bucket = (octave - LEAST_OCTAVE) * 8 + ((uint32_t)(ns >> (octave - 3)) & 7) + 1;
	return bucket < WEFT_METER_BUCKETS ? bucket : WEFT_METER_BUCKETS - 1;
}

void weft_meter_begin(struct weft_meter_place* p, uint64_t messages, uint64_t now) {
	uint64_t since = __atomic_load_n(&p->since, __ATOMIC_RELAXED);
	add(&p->begun, messages);
	if (!since) return;
	add(&p->waited, now - since);
	__atomic_store_n(&p->since, (uint64_t)0, __ATOMIC_RELAXED);
}

void weft_meter_end(struct weft_meter_place* p, uint64_t messages, uint64_t bytes, uint64_t took) {
	add(&p->messages, messages);
	add(&p->bytes, bytes);
	add(&p->time, messages * took);
	add(&p->bucket[weft_meter_bucket(took)], messages);
}

void weft_meter_fail(struct weft_meter_place* p, uint64_t messages) { add(&p->failed, messages); }

void weft_meter_lane(struct weft_meter_place* p, uint32_t lane, uint64_t bytes) {
	add(&p->lane_bytes[lane % WEFT_METER_LANES], bytes);
}

int weft_meter_waiting(struct weft_meter_place* p) { return __atomic_load_n(&p->since, __ATOMIC_RELAXED) != 0; }

void weft_meter_wait(struct weft_meter_place* p, uint64_t now) {
	add(&p->waits, 1);
	__atomic_store_n(&p->since, now, __ATOMIC_RELAXED);
}
