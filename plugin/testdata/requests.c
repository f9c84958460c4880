/* Threads that ask for requests while others end them, and blocks that come and go. Prints "ok", or what failed. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "requests.h"
#include "zz_slow.h"

#define ROUNDS 20000
#define COMM ((uintptr_t)0x7000000000000005)

static int failures, misuses;
#define CHECK(condition)                                                \
	do {                                                                \
		if (!(condition)) {                                             \
			printf("line %d: %s\n", __LINE__, #condition);              \
			__atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);         \
		}                                                               \
	} while (0)

int weft_misuse(const char* call, const char* what, uint64_t got) {
	CHECK(!strcmp(call, "collNet.test") && what);
	(void)got;
	__atomic_add_fetch(&misuses, 1, __ATOMIC_RELAXED);
	return 3;
}

static uint64_t helped;
static uintptr_t done_by_help; /* the request that it ends; 0: none */
static uint32_t closed_by_help = UINT32_MAX; /* the block that it closes, as another thread would */

void weft_coll_help(uintptr_t comm) {
	CHECK(comm == COMM);
	__atomic_add_fetch(&helped, (uint64_t)1, __ATOMIC_RELAXED);
	if (done_by_help) weft_request_done(done_by_help, 5);
	if (closed_by_help != UINT32_MAX) weft_block_close(closed_by_help);
}

static int states[8]; /* of the net's requests 1 to 8 */
static uint32_t looks; /* bit for each that was looked at */

int weft_test_waits(void* request) {
	uintptr_t r = (uintptr_t)request;
	CHECK(r >= 1 && r <= 8);
	__atomic_or_fetch(&looks, 1u << r, __ATOMIC_RELAXED);
	return __atomic_load_n(&states[r - 1], __ATOMIC_RELAXED);
}

static void awaits(uint32_t block) {
	static const struct {
		uintptr_t await[6];
		uint32_t n;
		int state[3]; /* of 1, 2 and 3 */
		int help;
		uint32_t looks;
	} cases[] = {
		{{0}, 0, {1, 1, 1}, 1, 0},
		{{1, 0}, 2, {1}, 0, 1 << 1},
		{{1, 0}, 2, {0}, 1, 1 << 1},
		{{1, 0}, 2, {-1}, 1, 1 << 1},
		{{1, 2, 0}, 3, {0, 1}, 0, 1 << 1 | 1 << 2},
		{{1, 2, 0}, 3, {1, 0}, 0, 1 << 1 | 1 << 2},
		{{1, 2, 0}, 3, {1, -1}, 1, 1 << 1 | 1 << 2},
		{{1, 2, 0}, 3, {0, 0}, 1, 1 << 1 | 1 << 2},
		{{1, 2, 0, 3, 0}, 5, {0, 1, 0}, 1, 1 << 1 | 1 << 2 | 1 << 3},
		{{1, 0, 2, 0, 3}, 5, {1, 1, 0}, 0, 1 << 1 | 1 << 2 | 1 << 3}, /* 3 is only looked at */
		{{1, 0, 2, 0, 3}, 5, {1, 1, -1}, 1, 1 << 1 | 1 << 2 | 1 << 3},
		{{1, 0, 0}, 3, {1}, 1, 1 << 1}, /* a group that waits for nothing */
	};
	uintptr_t r = weft_request_take(block);
	weft_block_looked(block);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int done;
		memcpy(states, cases[i].state, sizeof cases[i].state);
		weft_block_await(block, cases[i].await, cases[i].n);
		helped = looks = 0;
		CHECK(weft_coll_test(r, &done, NULL) == 0 && !done);
		if ((int)helped != cases[i].help || looks != cases[i].looks || weft_block_looked(block) == helped) {
			printf("case %zu: %d helped, %#x looked at\n", i, (int)helped, looks);
			failures++;
		}
		CHECK(!weft_block_looked(block));
	}
	weft_request_done(r, 0);
	int done;
	CHECK(weft_coll_test(r, &done, NULL) == 0 && done);
	weft_block_await(block, (uintptr_t[]){1, 0}, 2); /* which the block's end forgets */
}

static uint64_t asked[WEFT_BLOCK]; /* what one thread hands to the other */

static void* ends(void* unused) {
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t request;
		while (!(request = __atomic_exchange_n(&asked[i % WEFT_BLOCK], (uint64_t)0, __ATOMIC_ACQ_REL))) {}
		weft_block_await(0, (uintptr_t[]){1, 2, 0, 3}, (uint32_t)i % 2 * 4);
		weft_request_done(request, i);
	}
	weft_block_await(0, NULL, 0);
	return unused;
}

static void* hosts(void* block) {
	uintptr_t mine[WEFT_BLOCK] = {0};
	for (int i = 0; i < ROUNDS + WEFT_BLOCK; i++) {
		int done = 0, size = 0, at = i % WEFT_BLOCK;
		while (mine[at] && !done) CHECK(weft_coll_test(mine[at], &done, i % 2 ? &size : NULL) == 0);
		if (mine[at]) CHECK(i % 2 == 0 || size == i - WEFT_BLOCK);
		if (i >= ROUNDS) continue;
		mine[at] = weft_request_take(*(uint32_t*)block);
		CHECK(mine[at]);
		__atomic_store_n(&asked[at], (uint64_t)mine[at], __ATOMIC_RELEASE);
	}
	return NULL;
}

int main(void) {
	uint32_t block, other;
	int done = 7, size = 7;
	CHECK(weft_block_open(COMM, &block) == 0 && weft_block_open(COMM + 1, &other) == 0 && block != other);
	uintptr_t r = weft_request_take(block);
	CHECK(weft_coll_test(r, &done, &size) == 0 && !done);
	weft_request_fail(r, 6);
	CHECK(weft_coll_test(r, &done, &size) == 6 && weft_coll_test(r, &done, &size) == 6 && !done);
	weft_block_close(block);
	CHECK(weft_coll_test(r, &done, &size) == 3 && misuses == 1);
	CHECK(weft_block_open(COMM, &block) == 0);
	for (int i = 0; i < WEFT_BLOCK; i++) CHECK(weft_request_take(block));
	CHECK(!weft_request_take(block));
	weft_block_close(block);
	CHECK(weft_block_open(COMM, &block) == 0);
	for (uint64_t h = 1; h; h = h * 3 + (h >> 62)) {
		int rc = weft_coll_test(h, &done, NULL);
		CHECK(rc == 3 && !done);
		if (misuses > 10000) break;
	}
	r = weft_request_take(block);
	weft_request_done(r, 0x7fffffff);
	CHECK(weft_coll_test(r, &done, &size) == 0 && done && size == 0x7fffffff);
	CHECK(weft_coll_test(r, &done, &size) == 3 && !done);
	awaits(block);
	weft_block_close(block);
	CHECK(weft_block_open(COMM, &block) == 0);
	helped = 0;
	r = weft_request_take(block);
	CHECK(weft_coll_test(r, &done, &size) == 0 && !done && helped == 1);
	done_by_help = r;
	CHECK(weft_coll_test(r, &done, &size) == 0 && done && size == 5 && helped == 2);
	done_by_help = 0;
	r = weft_request_take(block);
	closed_by_help = block;
	CHECK(weft_coll_test(r, &done, &size) == 3 && !done && helped == 3);
	closed_by_help = UINT32_MAX;
	CHECK(weft_block_open(COMM, &block) == 0);
	pthread_t a, b;
	pthread_create(&a, NULL, ends, NULL);
	pthread_create(&b, NULL, hosts, &block);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	if (!failures) puts("ok");
	return failures != 0;
}
