/* Threads that say and read hints at once, contexts that come and go. Prints "ok", or what failed. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "hints.h"

#define CONTEXT(gen, slot) ((uintptr_t)(gen) << 32 | (uintptr_t)((slot) + 16))
#define WORDS (sizeof(ncclNetAttr_cur_t) / sizeof(uint32_t))
#define ROUNDS 100000

static int failures, misuses, stop;
#define CHECK(condition)                                                \
	do {                                                                \
		if (!(condition)) {                                             \
			printf("line %d: %s\n", __LINE__, #condition);              \
			__atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);         \
		}                                                               \
	} while (0)

int weft_misuse(const char* call, const char* what, uint64_t got) {
	CHECK(!strcmp(call, "setNetAttr") && what);
	(void)got;
	misuses++;
	return 3;
}

static uint32_t word(const ncclNetAttr_cur_t* a, size_t i) {
	uint32_t w;
	memcpy(&w, (const char*)a + i * sizeof w, sizeof w);
	return w;
}

static int say(uintptr_t ctx, uint32_t value) {
	ncclNetAttr_cur_t a;
	for (size_t i = 0; i < WORDS; i++) memcpy((char*)&a + i * sizeof value, &value, sizeof value);
	return weft_net_setNetAttr(ctx, &a);
}

static uint32_t heard(uintptr_t ctx) {
	ncclNetAttr_cur_t a;
	weft_hints_get(ctx, &a);
	for (size_t i = 1; i < WORDS; i++) CHECK(word(&a, i) == word(&a, 0)); /* never a mixture of two */
	return word(&a, 0);
}

static void* writes(void* first) {
	for (uint32_t i = 0; i < ROUNDS; i++) CHECK(say(CONTEXT(1, 0), 2 * i + (first != NULL)) == 0);
	return NULL;
}

static void* reads(void* unused) {
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) heard(CONTEXT(1, 0));
	return unused;
}

int main(void) {
	CHECK(say(CONTEXT(1, 0), 1) == 3 && say(0, 1) == 3 && say(12, 1) == 3 && misuses == 3);
	CHECK(weft_hints_keep(CONTEXT(1, 0)) == 0 && weft_hints_keep(CONTEXT(1, 300)) == 0);
	CHECK(weft_hints_keep(CONTEXT(1, 1 << 24)) != 0);
	CHECK(heard(CONTEXT(1, 0)) == 0 && say(CONTEXT(1, 0), 7) == 0 && say(CONTEXT(1, 300), 8) == 0);
	CHECK(heard(CONTEXT(1, 0)) == 7 && heard(CONTEXT(1, 300)) == 8);
	CHECK(say(CONTEXT(2, 300), 9) == 3 && say(CONTEXT(1, 301), 9) == 3 && say(CONTEXT(1, 1000), 9) == 3); /* stale, and never made */

	pthread_t w[2], r;
	pthread_create(&r, NULL, reads, NULL);
	for (int i = 0; i < 2; i++) pthread_create(&w[i], NULL, writes, i ? &stop : NULL);
	for (int i = 0; i < 2; i++) pthread_join(w[i], NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(r, NULL);
	CHECK(say(CONTEXT(1, 0), 5) == 0 && heard(CONTEXT(1, 0)) == 5);

	weft_hints_drop(CONTEXT(1, 0));
	CHECK(say(CONTEXT(1, 0), 6) == 3 && heard(CONTEXT(1, 0)) == 0);
	CHECK(weft_hints_keep(CONTEXT(2, 0)) == 0 && heard(CONTEXT(2, 0)) == 0);
	CHECK(say(CONTEXT(2, 0), 6) == 0);
	weft_hints_drop(CONTEXT(1, 0)); /* late: the place is another's */
	CHECK(heard(CONTEXT(2, 0)) == 6 && heard(CONTEXT(1, 0)) == 0);
	if (!failures) printf("ok\n");
	return failures != 0;
}
