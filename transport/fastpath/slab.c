/* slab.c: the arena of slabs, a comm's life in it, and the table of registered memory. All cold but the lookups. */
#define _GNU_SOURCE
#include "gate.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#define WF_SLABS_SHIFT 6 /* slabs that one mapping holds */
#define WF_SLABS (1u << WF_SLABS_SHIFT)
#define WF_MRS_SHIFT 12 /* registrations that one mapping holds */
#define WF_MRS (1u << WF_MRS_SHIFT)
#define WF_MRS_MASK 0xfffffu
#define WF_PAGE 4096u

_Static_assert(sizeof(struct wf_comm) % WF_PAGE == 0, "slabs are whole pages");
_Static_assert(offsetof(struct wf_comm, tx) == WF_PAGE, "the first page survives");
_Static_assert(offsetof(struct wf_comm, held) == 64 && offsetof(struct wf_comm, owner) == 128, "a line per writer");
_Static_assert(offsetof(struct wf_comm, ring) % 64 == 0 && offsetof(struct wf_comm, area) % 64 == 0, "whole lines");
_Static_assert(sizeof(struct wf_req) == 512 && sizeof(struct wf_lane) == 64 && sizeof(struct wf_cts_line) == 64, "whole lines");

static uint64_t wf_slab_dir[(WF_SLAB_MASK + 1) >> WF_SLABS_SHIFT];
static uint64_t wf_mr_dir[(WF_MRS_MASK + 1) >> WF_MRS_SHIFT];
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

struct wf_comm* wf_comm_at(uint32_t index) {
	struct wf_comm* slabs = (struct wf_comm*)(uintptr_t)wf_load(wf_slab_dir[(index & WF_SLAB_MASK) >> WF_SLABS_SHIFT]);
	return slabs ? &slabs[index & (WF_SLABS - 1)] : NULL;
}

static struct wf_comm* wf_slab_take(void) {
	struct wf_comm* c = (struct wf_comm*)(uintptr_t)wf_slab_spare;
	if (c) {
		wf_slab_spare = wf_get(c->list_next);
		return c;
	}
	uint32_t index = wf_get(wf_slab_count);
	if (index > WF_SLAB_MASK) {
		errno = ENFILE;
		return NULL;
	}
	if (index % WF_SLABS == 0) {
		void* p = wf_map(WF_SLABS * sizeof(struct wf_comm));
		if (!p) return NULL;
		wf_store(wf_slab_dir[index >> WF_SLABS_SHIFT], (uint64_t)(uintptr_t)p);
	}
	c = (struct wf_comm*)(uintptr_t)wf_get(wf_slab_dir[index >> WF_SLABS_SHIFT]) + index % WF_SLABS;
	wf_put(c->index, index);
	wf_store(wf_slab_count, index + 1);
	return c;
}

struct wf_comm* wf_comm_new(uint32_t kind, uint32_t device, uint64_t cookie, const struct wf_upcalls* upcalls) {
	pthread_mutex_lock(&wf_arena);
	struct wf_comm* c = wf_slab_take();
	pthread_mutex_unlock(&wf_arena);
	if (!c) return NULL;
	uint32_t gen = (wf_get(c->gen) + 1) & WF_GEN_MASK;
	if (!gen) gen = 1;
	wf_store(c->gen, gen);
	wf_put(c->kind, kind);
	wf_put(c->device, device);
	wf_put(c->cookie, cookie);
	wf_put(c->upcalls, (uint64_t)(uintptr_t)upcalls);
	wf_put(c->nlanes, 0u);
	wf_put(c->refuse_code, 5u); /* ncclInvalidUsage, until the core names another */
	wf_store(c->error, (uint64_t)gen << 32);
	wf_put(c->owner, (uint64_t)0);
	wf_put(c->listed, (uint64_t)0);
	wf_put(c->free_head, WF_NONE);
	wf_put(c->slots, 0u);
	wf_put(c->outstanding, 0u);
	wf_put(c->round, 0u);
	wf_put(c->unsent, 0u);
	wf_put(c->head_seq, (uint64_t)1);
	wf_put(c->cts_seq, (uint64_t)1);
	wf_put(c->next_seq, (uint64_t)1);
	wf_put(c->tail_seq, (uint64_t)1);
	wf_put(c->cts_out, (uint64_t)1);
	wf_put(c->head_line, 0u);
	wf_put(c->head_mask, 0u);
	wf_put(c->head_refused, 0u);
	wf_put(c->cts_line, 0u);
	wf_put(c->cts_entry, 0u);
	wf_put(c->tx_head, 0u);
	wf_put(c->tx_tail, 0u);
	wf_put(c->next_line, 0u);
	wf_put(c->tail_line, 0u);
	wf_put(c->incomplete, 0u);
	wf_put(c->messages, (uint64_t)0);
	wf_put(c->bytes, (uint64_t)0);
	for (int i = 0; i < WF_LANES; i++) wf_put(c->lanes[i].ops, (uint64_t)0);
	wf_store(c->state, (uint32_t)WF_COMM_NEW);
	return c;
}

uint64_t wf_comm_open(struct wf_comm* c) {
	if (!wf_get(c->nlanes)) return 0;
	wf_store(c->state, (uint32_t)WF_COMM_OPEN);
	return wf_handle(wf_get(c->kind), wf_get(c->gen), wf_get(c->index), 0);
}

struct wf_comm* wf_comm_lookup(uint64_t h) {
	uint32_t kind = wf_handle_kind(h);
	if ((kind != WF_KIND_SEND && kind != WF_KIND_RECV) || wf_handle_slot(h)) return NULL;
	struct wf_comm* c = wf_comm_at(wf_handle_slab(h));
	if (!c || wf_load(c->state) != WF_COMM_OPEN || wf_load(c->gen) != wf_handle_gen(h) || wf_get(c->kind) != kind) return NULL;
	return c;
}

void wf_comm_close(struct wf_comm* c) {
	wf_unlist(c);
	wf_store(c->state, (uint32_t)WF_COMM_CLOSED);
}

/* The pages behind the first come back as zeros, so no slot of the next comm can match an old request. */
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
	return __atomic_compare_exchange_n(&c->error, &healthy, healthy | (uint32_t)code, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

int wf_comm_uses(struct wf_comm* c, uint64_t mr) {
	uint32_t slots = wf_get(c->outstanding) ? wf_get(c->slots) : 0;
	for (uint32_t s = 0; s < slots; s++) {
		struct wf_req* r = &c->req[s];
		uint32_t state = wf_get(r->state);
		if (state != WF_REQ_MATCHED && state != WF_REQ_POSTED) continue;
		for (uint32_t i = 0; i < wf_get(r->n); i++)
			if (wf_get(r->e[i].mr) == mr) return 1;
	}
	return 0;
}

/* Makes the table reach index; entries never move. */
struct wf_mr* wf_mr_at(uint32_t index) {
	if (index > WF_MRS_MASK) {
		errno = ENFILE;
		return NULL;
	}
	uint64_t* chunk = &wf_mr_dir[index >> WF_MRS_SHIFT];
	if (!wf_load(*chunk)) {
		pthread_mutex_lock(&wf_arena);
		if (!wf_load(*chunk)) wf_store(*chunk, (uint64_t)(uintptr_t)wf_map(WF_MRS * sizeof(struct wf_mr)));
		pthread_mutex_unlock(&wf_arena);
		if (!wf_load(*chunk)) return NULL;
	}
	return (struct wf_mr*)(uintptr_t)wf_load(*chunk) + (index & (WF_MRS - 1));
}

uint64_t wf_mr_open(struct wf_mr* mr, uint32_t index) {
	uint32_t gen = (wf_get(mr->last) + 1) & WF_GEN_MASK;
	if (!gen) gen = 1;
	wf_put(mr->last, gen);
	wf_store(mr->gen, gen);
	return wf_handle(WF_KIND_MR, gen, index >> 16, index & WF_SLOT_MASK);
}

struct wf_mr* wf_mr_lookup(uint64_t h) {
	uint64_t index = (uint64_t)wf_handle_slab(h) << 16 | wf_handle_slot(h);
	if (wf_handle_kind(h) != WF_KIND_MR || index > WF_MRS_MASK) return NULL;
	struct wf_mr* table = (struct wf_mr*)(uintptr_t)wf_load(wf_mr_dir[index >> WF_MRS_SHIFT]);
	if (!table) return NULL;
	struct wf_mr* mr = &table[index & (WF_MRS - 1)];
	return wf_load(mr->gen) == wf_handle_gen(h) ? mr : NULL;
}

void wf_mr_close(struct wf_mr* mr) { wf_store(mr->gen, 0u); }
