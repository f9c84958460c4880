/* meter.c: threads count, each in a place of its own, while another reads all places: sums never fall, and at the end
 * each message is in one bucket. Arguments: seed and rounds, which the other drivers take, too. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "meter.h"

#include "check.h"

#define WRITERS 4

static struct weft_meter_place place[WRITERS];
static uint64_t messages, seed = 1;
static uint32_t stop;

static uint64_t get(const uint64_t* word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }

static void* count(void* arg) {
	struct weft_meter_place* p = arg;
	uint64_t s = seed + (uint64_t)(p - place), now = 1;
	for (uint64_t i = 0; i < messages; i++) {
		s = s * 6364136223846793005u + 1442695040888963407u;
		if (i % 3 == 0 && !weft_meter_waiting(p)) weft_meter_wait(p, now);
		weft_meter_begin(p, 1 + i % 2, now += 5);
		if (i % 10) weft_meter_end(p, 1 + i % 2, 100, s >> (i % 64));
		else weft_meter_fail(p, 1 + i % 2);
		weft_meter_lane(p, (uint32_t)i, 100);
	}
	return NULL;
}

static void* look(void* none) {
	uint64_t seen[WRITERS] = {0};
	(void)none;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		for (int i = 0; i < WRITERS; i++) {
			uint64_t now = get(&place[i].messages) + get(&place[i].failed);
			CHECK(now >= seen[i], "%lu after %lu", now, seen[i]);
			seen[i] = now;
		}
	return NULL;
}

/* A bucket begins where the one before ends, and is an eighth of a power of two. */
static void buckets(void) {
	uint32_t last = 0;
	CHECK(weft_meter_bucket(0) == 0 && weft_meter_bucket(63) == 0 && weft_meter_bucket(64) == 1, "the first");
	for (uint64_t ns = 64; ns < 1ull << 38; ns += ns / 64) {
		uint32_t b = weft_meter_bucket(ns);
		CHECK(b == last || b == last + 1, "%lu ns are in %u, less in %u", ns, b, last);
		CHECK(b == WEFT_METER_BUCKETS - 1 || weft_meter_bucket(ns + ns / 8 + 1) > b, "bucket %u is wide", b);
		last = b;
	}
	CHECK(weft_meter_bucket(UINT64_MAX) == WEFT_METER_BUCKETS - 1, "the last");
}

int main(int argc, char** argv) {
	pthread_t writer[WRITERS], reader;
	if (argc > 1) seed = strtoull(argv[1], NULL, 0);
	messages = 20000 * (argc > 2 ? strtoull(argv[2], NULL, 0) : 1);
	buckets();
	CHECK(!pthread_create(&reader, NULL, look, NULL), "thread");
	for (int i = 0; i < WRITERS; i++) CHECK(!pthread_create(&writer[i], NULL, count, &place[i]), "thread");
	for (int i = 0; i < WRITERS; i++) pthread_join(writer[i], NULL);
	__atomic_store_n(&stop, 1u, __ATOMIC_RELAXED);
	pthread_join(reader, NULL);
	for (int i = 0; i < WRITERS; i++) {
		uint64_t in = 0, lanes = 0;
		for (int b = 0; b < WEFT_METER_BUCKETS; b++) in += place[i].bucket[b];
		for (int l = 0; l < WEFT_METER_LANES; l++) lanes += place[i].lane_bytes[l];
		CHECK(in == place[i].messages, "%lu in buckets, %lu messages", in, place[i].messages);
		CHECK(place[i].begun == place[i].messages + place[i].failed, "%lu begun", place[i].begun);
		CHECK(lanes == 100 * messages && place[i].waits && place[i].waited == 5 * place[i].waits && !place[i].since,
			"lanes have %lu bytes, %lu waits took %lu ns", lanes, place[i].waits, place[i].waited);
	}
	return 0;
}
