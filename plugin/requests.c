#include "requests.h"

#include <errno.h>
#include <stdlib.h>

#include "fastpath.h"
#include "zz_slow.h"

/* A handle is kind 4 | generation 28 | index 32. */
#define KIND ((uint64_t)WEFT_REQUEST_KIND)
#define BLOCKS 65536
#define GEN_MASK 0xfffffffu

enum state { FREE, PENDING, DONE, FAILED };

/* A word is generation 28 | value 32 | state 4; all are touched through __atomic_* only. Of a block that nobody has,
 * all are free. */
struct block {
	uint64_t word[WEFT_BLOCK];
	uintptr_t comm;
	uint32_t used;
	uint32_t looked;  /* test has looked at what the block awaits */
	uint32_t awaited; /* how much of await counts */
	uintptr_t await[WEFT_AWAITED];
};

static struct block* blocks[BLOCKS]; /* never given back: a stale request finds its generation gone */

static uint64_t word_of(uint32_t gen, uint32_t value, enum state s) {
	return (uint64_t)gen << 36 | (uint64_t)value << 4 | s;
}
static uint32_t gen_of(uint64_t word) { return (uint32_t)(word >> 36); }
static uint32_t value_of(uint64_t word) { return (uint32_t)(word >> 4); }
static enum state state_of(uint64_t word) { return (enum state)(word & 15); }

static struct block* block_of(uintptr_t handle) {
	uint32_t i = (uint32_t)handle / WEFT_BLOCK;
	return handle >> 60 == KIND && i < BLOCKS ? __atomic_load_n(&blocks[i], __ATOMIC_ACQUIRE) : NULL;
}

/* The word of a handle, if it is its generation's; NULL: stale, or none. */
static uint64_t* find(uintptr_t handle, uint64_t* word) {
	uint32_t gen = (uint32_t)(handle >> 32) & GEN_MASK;
	struct block* b = block_of(handle);
	if (!b) return NULL;
	uint64_t* w = &b->word[(uint32_t)handle % WEFT_BLOCK];
	*word = __atomic_load_n(w, __ATOMIC_ACQUIRE);
	return gen_of(*word) == gen && state_of(*word) != FREE ? w : NULL;
}

int weft_block_open(uintptr_t comm, uint32_t* block) {
	for (uint32_t i = 0; i < BLOCKS; i++) {
		struct block *none = NULL, *b = __atomic_load_n(&blocks[i], __ATOMIC_ACQUIRE);
		uint32_t unused = 0;
		if (!b) {
			struct block* fresh = calloc(1, sizeof *fresh);
			if (!fresh) return ENOMEM;
			if (__atomic_compare_exchange_n(&blocks[i], &none, fresh, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) b = fresh;
			else free(fresh);
		}
		if (!b) b = none;
		if (__atomic_compare_exchange_n(&b->used, &unused, 1u, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			__atomic_store_n(&b->comm, comm, __ATOMIC_RELEASE);
			*block = i;
			return 0;
		}
	}
	return ENOSPC;
}

void weft_block_close(uint32_t block) {
	struct block* b = __atomic_load_n(&blocks[block], __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < WEFT_BLOCK; i++) {
		uint64_t word = __atomic_load_n(&b->word[i], __ATOMIC_RELAXED);
		__atomic_store_n(&b->word[i], word_of(gen_of(word), 0, FREE), __ATOMIC_RELEASE);
	}
	__atomic_store_n(&b->awaited, 0u, __ATOMIC_RELAXED);
	__atomic_store_n(&b->used, 0u, __ATOMIC_RELEASE);
}

/* A look at the same time may see a mix of these groups and those before. At worst it asks for help in vain, or leaves
 * to the next look what this one should have found. */
void weft_block_await(uint32_t block, const uintptr_t* requests, uint32_t n) {
	struct block* b = __atomic_load_n(&blocks[block], __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < n; i++) __atomic_store_n(&b->await[i], requests[i], __ATOMIC_RELAXED);
	__atomic_store_n(&b->awaited, n, __ATOMIC_RELEASE);
}

uint32_t weft_block_looked(uint32_t block) {
	struct block* b = __atomic_load_n(&blocks[block], __ATOMIC_ACQUIRE);
	return __atomic_exchange_n(&b->looked, 0u, __ATOMIC_RELAXED);
}

/* Whether a comm waits for messages: of no group have all come. */
static int waits(struct block* b) {
	uint32_t n = __atomic_load_n(&b->awaited, __ATOMIC_ACQUIRE), open = 0;
	for (uint32_t i = 0; i < n; i++) {
		uintptr_t request = __atomic_load_n(&b->await[i], __ATOMIC_RELAXED);
		if (!request && !open) return 0;
		int state = request ? weft_test_waits((void*)request) : 0;
		if (state < 0) return 0;
		open = request ? open + (uint32_t)state : 0; /* of a group, what has not come */
	}
	if (n) __atomic_store_n(&b->looked, 1u, __ATOMIC_RELAXED);
	return n > 0;
}

uintptr_t weft_request_take(uint32_t block) {
	struct block* b = __atomic_load_n(&blocks[block], __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < WEFT_BLOCK; i++) {
		uint64_t word = __atomic_load_n(&b->word[i], __ATOMIC_ACQUIRE);
		if (state_of(word) != FREE) continue;
		uint32_t gen = (gen_of(word) + 1) & GEN_MASK;
		__atomic_store_n(&b->word[i], word_of(gen, 0, PENDING), __ATOMIC_RELEASE);
		return (uintptr_t)(KIND << 60 | (uint64_t)gen << 32 | (uint64_t)block * WEFT_BLOCK | i);
	}
	return 0;
}

static void end(uintptr_t request, uint32_t value, enum state s) {
	uint64_t word;
	uint64_t* w = find(request, &word);
	if (w) __atomic_store_n(w, word_of(gen_of(word), value, s), __ATOMIC_RELEASE);
}

void weft_request_done(uintptr_t request, int size) { end(request, (uint32_t)size, DONE); }
void weft_request_fail(uintptr_t request, int code) { end(request, (uint32_t)code, FAILED); }

/* A request that is done is told of once. One that has failed stays, for some releases ask again. */
int weft_coll_test(uintptr_t request, int* done, int* size) {
	uint64_t word;
	uint64_t* w = find(request, &word);
	*done = 0;
	struct block* b = block_of(request);
	if (w && b && state_of(word) == PENDING) {
		if (waits(b)) return 0;
		weft_coll_help(__atomic_load_n(&b->comm, __ATOMIC_ACQUIRE));
		w = find(request, &word);
	}
	if (!w) return weft_misuse("collNet.test", "request is none that is under way", request);
	if (state_of(word) == FAILED) return (int)value_of(word);
	if (state_of(word) == PENDING) return 0;
	if (!__atomic_compare_exchange_n(w, &word, word_of(gen_of(word), 0, FREE), 0, __ATOMIC_ACQ_REL,
			__ATOMIC_RELAXED))
		return 0; /* its comm is being closed, or another thread asks */
	*done = 1;
	if (size) *size = (int)value_of(word);
	return 0;
}
