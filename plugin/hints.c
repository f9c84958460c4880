#include "hints.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fastpath.h"

#define FIRST 16       /* the first context's low half (contexts.go) */
#define CHUNK 256      /* contexts that get their memory together; it is never given back */
#define CHUNKS 4096
#define TRIES 1000     /* a reader's, while a writer is inside */
#define WORDS (sizeof(ncclNetAttr_cur_t) / sizeof(uint32_t))

_Static_assert(sizeof(ncclNetAttr_cur_t) % sizeof(uint32_t) == 0, "made of words");

/* All words are touched through __atomic_* only. */
struct hints {
	uint64_t ctx;  /* whose; 0: nobody's */
	uint32_t turn; /* odd: a thread writes */
	uint32_t word[WORDS];
};

static struct hints* chunks[CHUNKS];

/* Where a context with this value has its hints; NULL: no context had that place yet. */
static struct hints* place(uintptr_t ctx) {
	uint32_t i = (uint32_t)ctx - FIRST;
	struct hints* chunk = i < CHUNK * CHUNKS ? __atomic_load_n(&chunks[i / CHUNK], __ATOMIC_ACQUIRE) : NULL;
	return chunk ? &chunk[i % CHUNK] : NULL;
}

int weft_hints_keep(uintptr_t ctx) {
	uint32_t i = (uint32_t)ctx - FIRST;
	if (i >= CHUNK * CHUNKS) return ENOSPC;
	if (!place(ctx)) {
		struct hints *none = NULL, *chunk = calloc(CHUNK, sizeof *chunk);
		if (!chunk) return ENOMEM;
		if (!__atomic_compare_exchange_n(&chunks[i / CHUNK], &none, chunk, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			free(chunk);
	}
	struct hints* h = place(ctx);
	for (size_t w = 0; w < WORDS; w++) __atomic_store_n(&h->word[w], 0u, __ATOMIC_RELAXED);
	__atomic_store_n(&h->ctx, (uint64_t)ctx, __ATOMIC_RELEASE);
	return 0;
}

void weft_hints_drop(uintptr_t ctx) {
	struct hints* h = place(ctx);
	uint64_t own = ctx; /* or the place is another's by now */
	if (h) __atomic_compare_exchange_n(&h->ctx, &own, (uint64_t)0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Words are stored with release and loaded with acquire: who sees one of a writer sees that its turn has begun. A
 * thread that finds another writing leaves it the last word, as if it had come before: nobody waits, even for a
 * thread that is stopped. */
int weft_net_setNetAttr(uintptr_t ctx, ncclNetAttr_cur_t* netAttr) {
	struct hints* h = place(ctx);
	if (!h || __atomic_load_n(&h->ctx, __ATOMIC_ACQUIRE) != ctx)
		return weft_misuse("setNetAttr", "ctx is no context that init gave and finalize has not taken", ctx);
	uint32_t said[WORDS];
	size_t same = 0;
	memcpy(said, netAttr, sizeof said);
	while (same < WORDS && __atomic_load_n(&h->word[same], __ATOMIC_RELAXED) == said[same]) same++;
	if (same == WORDS) return 0;
	uint32_t turn = __atomic_load_n(&h->turn, __ATOMIC_RELAXED);
	if (turn % 2 || !__atomic_compare_exchange_n(&h->turn, &turn, turn + 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return 0;
	for (size_t w = 0; w < WORDS; w++) __atomic_store_n(&h->word[w], said[w], __ATOMIC_RELEASE);
	__atomic_store_n(&h->turn, turn + 2, __ATOMIC_RELEASE);
	return 0;
}

void weft_hints_get(uintptr_t ctx, ncclNetAttr_cur_t* attr) {
	struct hints* h = place(ctx);
	memset(attr, 0, sizeof *attr);
	if (!h || __atomic_load_n(&h->ctx, __ATOMIC_ACQUIRE) != ctx) return;
	for (int i = 0; i < TRIES; i++) {
		uint32_t said[WORDS], turn = __atomic_load_n(&h->turn, __ATOMIC_ACQUIRE);
		for (size_t w = 0; w < WORDS; w++) said[w] = __atomic_load_n(&h->word[w], __ATOMIC_ACQUIRE);
		if (turn % 2 || __atomic_load_n(&h->turn, __ATOMIC_RELAXED) != turn) continue;
		memcpy(attr, said, sizeof said);
		return;
	}
}
