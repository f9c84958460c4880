/* slab.c: the arena of slabs, a comm's life in it, and the table of registered memory. All cold but the lookups. */
#define _GNU_SOURCE
#include "gate.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#define WF_PAGE 4096u

typedef uint64_t __attribute__((may_alias)) wf_word;

_Static_assert(sizeof(struct wf_comm) % WF_PAGE == 0, "slabs are whole pages");
_Static_assert(offsetof(struct wf_comm, area) + WF_STREAM_BYTES == WF_PAGE, "the first page survives");
_Static_assert((offsetof(struct wf_comm, late) - offsetof(struct wf_comm, ring)) % 8 == 0, "the ring is words");
_Static_assert(offsetof(struct wf_comm, cookie) == 64 && offsetof(struct wf_comm, listed) == 128,
	"what is used together is on one line");

uint64_t wf_slab_dir[(WF_SLAB_MASK + 1) / WF_SLABS];
uint64_t wf_mr_dir[(WF_MRS_MASK + 1) / WF_MRS];
static uint32_t wf_slab_count; /* slabs above were never used */
static uint64_t wf_slab_spare; /* freed slabs, linked by list_next; under wf_arena */
static pthread_mutex_t wf_arena = PTHREAD_MUTEX_INITIALIZER;

/* Mappings hold many slabs, of which few pages are ever touched: no huge pages. */
static void* wf_map(size_t bytes) {
	void* p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) return NULL;
	madvise(p, bytes, MADV_NOHUGEPAGE);
	return p;
}

uint32_t wf_comm_count(void) { return wf_load(wf_slab_count); }

static struct wf_comm* wf_slab_take(void) {
	struct wf_comm* c = (struct wf_comm*)(uintptr_t)wf_slab_spare;
	uint32_t index = wf_get(wf_slab_count);
	errno = ENFILE;
	if (c) wf_slab_spare = wf_get(c->list_next);
	if (c || index > WF_SLAB_MASK) return c;
	if (index % WF_SLABS == 0) {
		void* p = wf_map(WF_SLABS * sizeof(struct wf_comm));
		if (!p) return NULL;
		wf_store(wf_slab_dir[index / WF_SLABS], (uint64_t)(uintptr_t)p);
	}
	c = (struct wf_comm*)(uintptr_t)wf_get(wf_slab_dir[index / WF_SLABS]) + index % WF_SLABS;
	wf_put(c->index, index);
	wf_store(wf_slab_count, index + 1);
	return c;
}

static void wf_clear(void* from, void* to) {
	for (char* p = from; p < (char*)to; p += 8)
		if (wf_get(*(wf_word*)p)) wf_put(*(wf_word*)p, (uint64_t)0); /* pages that are empty stay so */
}

/* What a comm believes must not be of the slab's comm before: CTS lines, records and refused groups, by their seq,
 * and requests and late flushes, by their generation. Nor may the peer read on a line of out what another was told.
 * Nobody else empties it for sure: locked pages stay as they are, and so do all where a sandbox's madvise does nothing
 * and returns 0. Words that are not named are written before they are read. */
static void wf_forget(struct wf_comm* c) {
	/* the slab has had no comm: its pages are empty, and to read them would cost a fault each */
	if (!wf_get(c->gen)) return;
	uint64_t seq = wf_get(c->cts_seq) > wf_get(c->next_seq) ? wf_get(c->cts_seq) : wf_get(c->next_seq);
	size_t lines = seq < WF_LINES / WF_GROUP ? seq * WF_GROUP : WF_LINES + WF_LINES_SPARE;
	/* over TCP nobody else writes the ring: lines of the groups until seq */
	if (wf_get(c->lanes[0].streams)) {
		wf_clear(c->ring, c->ring + lines);
		wf_clear(c->out, c->out + lines);
	} else {
		wf_clear(c->ring, c->late);
		wf_clear(c->late, c->req);
	}
	if (wf_get(c->refused)) wf_clear(c->refusals, c->refusals + WF_LINES);
	for (uint32_t i = wf_get(c->slots); i--;) wf_clear(&c->req[i].gen, &c->req[i].n);
}

struct wf_comm* wf_comm_new(uint32_t kind, uint32_t device, uint64_t cookie, const struct wf_upcalls* upcalls) {
	pthread_mutex_lock(&wf_arena);
	struct wf_comm* c = wf_slab_take();
	pthread_mutex_unlock(&wf_arena);
	if (!c) return NULL;
	wf_forget(c);
	uint32_t gen = (wf_get(c->gen) + 1) & WF_GEN_MASK;
	if (!gen) gen = 1;
	wf_store(c->gen, gen);
	uint32_t req_gen = wf_get(c->req_gen);
	wf_clear(&c->owner, (char*)c + WF_PAGE);
	wf_put(c->kind, kind);
	wf_put(c->device, device);
	wf_put(c->cookie, cookie);
	wf_put(c->upcalls, (uint64_t)(uintptr_t)upcalls);
	wf_put(c->refuse_code, 5u); /* ncclInvalidUsage, until the core names another */
	wf_store(c->error, (uint64_t)gen << 32);
	wf_put(c->req_gen, req_gen);
	wf_put(c->free_head, WF_NONE);
	uint64_t* first[] = {&c->head_seq, &c->cts_seq, &c->next_seq, &c->tail_seq, &c->cts_out};
	for (int i = 0; i < 5; i++) wf_put(*first[i], (uint64_t)1);
	wf_store(c->state, (uint32_t)WF_COMM_NEW);
	return c;
}

uint64_t wf_comm_open(struct wf_comm* c) {
	if (!wf_get(c->nlanes)) return 0;
	wf_store(c->state, (uint32_t)WF_COMM_OPEN);
	return wf_handle(wf_get(c->kind), wf_get(c->gen), wf_get(c->index), 0);
}

void wf_comm_close(struct wf_comm* c) {
	wf_unlist(c);
	wf_store(c->state, (uint32_t)WF_COMM_CLOSED);
}

/* Gives the pages behind the first back, where the system takes them; wf_comm_new does not count on it. */
void wf_comm_free(struct wf_comm* c) {
	madvise((char*)c + WF_PAGE, sizeof *c - WF_PAGE, MADV_DONTNEED);
	pthread_mutex_lock(&wf_arena);
	wf_store(c->state, (uint32_t)WF_COMM_FREE);
	wf_put(c->list_next, wf_slab_spare);
	wf_slab_spare = (uint64_t)(uintptr_t)c;
	pthread_mutex_unlock(&wf_arena);
}

/* The generation is part of the word, so a late verdict cannot hit the slab's next comm. */
int wf_comm_fail(struct wf_comm* c, uint32_t gen, int32_t code) {
	uint64_t healthy = (uint64_t)gen << 32;
	return __atomic_compare_exchange_n(&c->error, &healthy, healthy | (uint32_t)code, 0, __ATOMIC_ACQ_REL,
		__ATOMIC_RELAXED);
}

/* Makes the table reach index; entries never move. */
struct wf_mr* wf_mr_at(uint32_t index) {
	errno = ENFILE;
	if (index > WF_MRS_MASK) return NULL;
	uint64_t* chunk = &wf_mr_dir[index / WF_MRS];
	pthread_mutex_lock(&wf_arena);
	struct wf_mr* table = (struct wf_mr*)(uintptr_t)wf_get(*chunk);
	if (!table) wf_store(*chunk, (uint64_t)(uintptr_t)(table = wf_map(WF_MRS * sizeof(struct wf_mr))));
	pthread_mutex_unlock(&wf_arena);
	return table ? table + index % WF_MRS : NULL;
}

struct wf_comm* wf_comm_find(uint64_t h) { return wf_comm_lookup(h); }
