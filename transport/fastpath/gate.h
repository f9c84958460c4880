/* gate.h: access to slab words, and the gate, for the C files of the fast path and of its providers.
 *
 * wf_get, wf_put: words of one writing side. Relaxed, because the gate orders them; plain under ThreadSanitizer, so
 * that it sees an access that slipped past the gate. wf_load, wf_store: words that order others. */
#ifndef WEFT_GATE_H
#define WEFT_GATE_H

#include "fastpath.h"

#ifdef __SANITIZE_THREAD__
#define wf_get(word) (word)
#define wf_put(word, value) ((void)((word) = (value)))
#else
#define wf_get(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)
#define wf_put(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELAXED)
#endif
#define wf_load(word) __atomic_load_n(&(word), __ATOMIC_ACQUIRE)
#define wf_store(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELEASE)
#define wf_likely(x) __builtin_expect(!!(x), 1)
#define wf_unlikely(x) __builtin_expect(!!(x), 0)
#define WF_HIDDEN __attribute__((visibility("hidden")))

extern WF_HIDDEN __thread struct wf_thread* wf_self __attribute__((tls_model("initial-exec")));
extern WF_HIDDEN uint32_t wf_fenced;     /* 1: membarrier orders entry against a holder; 0: entry is an exchange */
extern WF_HIDDEN uint32_t wf_forked_child; /* 1: this is a forked child */

WF_HIDDEN struct wf_thread* wf_thread_join(void);
WF_HIDDEN int wf_adopt(struct wf_thread* t, struct wf_comm* c);
WF_HIDDEN void wf_list(struct wf_thread* t, struct wf_comm* c);
WF_HIDDEN void wf_unlist(struct wf_comm* c);
WF_HIDDEN const struct wf_upcalls* wf_default_upcalls(void);

static inline void wf_leave(struct wf_thread* t) { wf_store(t->in_call, (uint64_t)0); }

/* 1: inside, and the caller owns the comm; 0: somebody holds it, or another thread owns it. */
static inline int wf_enter_own(struct wf_thread* t, struct wf_comm* c) {
	if (wf_likely(wf_load(wf_fenced))) {
		wf_store(t->in_call, (uint64_t)(uintptr_t)c);
		__atomic_signal_fence(__ATOMIC_SEQ_CST); /* the holder's membarrier does the rest */
		if (wf_likely(!wf_load(c->held) && wf_get(c->owner) == (uint64_t)(uintptr_t)t)) return 1;
	} else {
		__atomic_exchange_n(&t->in_call, (uint64_t)(uintptr_t)c, __ATOMIC_SEQ_CST);
		if (!__atomic_load_n(&c->held, __ATOMIC_SEQ_CST) && wf_get(c->owner) == (uint64_t)(uintptr_t)t) return 1;
	}
	wf_leave(t);
	return 0;
}

/* The same, and takes the comm over from another thread. */
static inline int wf_enter(struct wf_thread* t, struct wf_comm* c) {
	return wf_likely(wf_enter_own(t, c)) || (wf_adopt(t, c) && wf_enter_own(t, c));
}

static inline uint64_t wf_handle(uint32_t kind, uint32_t gen, uint32_t slab, uint32_t slot) {
	return (uint64_t)kind << WF_KIND_SHIFT | (uint64_t)(gen & WF_GEN_MASK) << WF_GEN_SHIFT |
		(uint64_t)slab << WF_SLAB_SHIFT | slot;
}
/* Kind and generation of a handle, as one number. */
static inline uint32_t wf_id(uint32_t kind, uint32_t gen) { return kind << (WF_KIND_SHIFT - WF_GEN_SHIFT) | gen; }
static inline uint32_t wf_handle_id(uint64_t h) { return (uint32_t)(h >> WF_GEN_SHIFT); }
static inline uint32_t wf_handle_kind(uint64_t h) { return (uint32_t)(h >> WF_KIND_SHIFT); }
static inline uint32_t wf_handle_gen(uint64_t h) { return (uint32_t)(h >> WF_GEN_SHIFT) & WF_GEN_MASK; }
static inline uint32_t wf_handle_slab(uint64_t h) { return (uint32_t)(h >> WF_SLAB_SHIFT) & WF_SLAB_MASK; }
static inline uint32_t wf_handle_slot(uint64_t h) { return (uint32_t)h & WF_SLOT_MASK; }

/* Tables of slabs and registrations: mappings that hold many, and never move. */
#define WF_SLABS 32u
#define WF_MRS 4096u
#define WF_MRS_MASK 0xfffffu
extern WF_HIDDEN uint64_t wf_slab_dir[(WF_SLAB_MASK + 1) / WF_SLABS];
extern WF_HIDDEN uint64_t wf_mr_dir[(WF_MRS_MASK + 1) / WF_MRS];

/* The slab of that number, or NULL. */
static inline struct wf_comm* wf_comm_at(uint32_t index) {
	struct wf_comm* slabs = (struct wf_comm*)(uintptr_t)wf_load(wf_slab_dir[(index & WF_SLAB_MASK) / WF_SLABS]);
	return slabs ? &slabs[index % WF_SLABS] : NULL;
}

/* The open comm with that handle, or NULL: stale, closed or foreign. */
static inline struct wf_comm* wf_comm_lookup(uint64_t h) {
	uint32_t kind = wf_handle_kind(h);
	struct wf_comm* c = (kind == WF_KIND_SEND || kind == WF_KIND_RECV) &&
		!wf_handle_slot(h) ? wf_comm_at(wf_handle_slab(h)) : NULL;
	return c && wf_load(c->state) == WF_COMM_OPEN && wf_load(c->gen) == wf_handle_gen(h) &&
		wf_get(c->kind) == kind ? c : NULL;
}

/* The registration that a request in flight uses: deregMr fails those before it ends. */
static inline struct wf_mr* wf_mr_of(uint64_t h) {
	struct wf_mr* table = (struct wf_mr*)(uintptr_t)wf_load(wf_mr_dir[(h & WF_MRS_MASK) / WF_MRS]);
	return &table[h % WF_MRS];
}

/* The live registration with that handle, or NULL. */
static inline struct wf_mr* wf_mr_lookup(uint64_t h) {
	uint64_t index = h & ((1ull << WF_GEN_SHIFT) - 1);
	struct wf_mr* mr = NULL;
	if (wf_likely(index <= WF_MRS_MASK)) mr = (struct wf_mr*)(uintptr_t)wf_load(wf_mr_dir[index / WF_MRS]);
	if (wf_unlikely(!mr)) return NULL;
	uint32_t gen = wf_load((mr += index % WF_MRS)->gen);
	return wf_likely(gen && wf_id(WF_KIND_MR, gen) == wf_handle_id(h)) ? mr : NULL;
}

#endif
