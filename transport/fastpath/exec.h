/* exec.h: what the calls of the executor share. */
#ifndef WEFT_EXEC_H
#define WEFT_EXEC_H

#include "gate.h"

#include <time.h>

static inline uint64_t wf_clock(void) { /* nanoseconds */
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#define WF_COLD __attribute__((noinline, cold)) /* its callers keep short what runs for every message */

WF_HIDDEN WF_COLD int wf_bad(const char* call, uint32_t kind, const char* where, uint64_t got);
WF_HIDDEN WF_COLD int wf_leave_fault(struct wf_thread* t, struct wf_comm* c, const char* call);
WF_HIDDEN void wf_flush_list(struct wf_thread* t, const char* call);
WF_HIDDEN int wf_poll_cts(struct wf_comm* c);
WF_HIDDEN int wf_flush(struct wf_thread* t, struct wf_comm* c, void* data, int size, void* mhandle, void** request);
WF_HIDDEN WF_COLD int wf_flush_late(uint64_t h, void* data, int size, void* mhandle, void** request);
WF_HIDDEN WF_COLD int wf_late_test(struct wf_thread* t, uint64_t h, int* done, int* sizes);
WF_HIDDEN WF_COLD int wf_ended(int code, const char* call, uint32_t kind, void* comm, int n, const size_t* sizes,
	void** request);
WF_HIDDEN WF_COLD uint32_t wf_reclaim(struct wf_comm* c);
WF_HIDDEN void wf_end_group(struct wf_comm* c, struct wf_req* r, uint32_t state);
/* this thread has polled a connect or an accept; vain: nothing came of it. The thread may rest a moment */
WF_HIDDEN void wf_polled(int vain);
/* event.c */
WF_HIDDEN WF_COLD void wf_events_start(struct wf_comm* c, uint32_t slot, void** phandles);
WF_HIDDEN WF_COLD void wf_events_stop(struct wf_comm* c, uint32_t slot);

static inline const struct wf_lane_ops* wf_ops(struct wf_lane* l) {
	return (const struct wf_lane_ops*)(uintptr_t)wf_get(l->ops);
}

/* A fault that ends a group, not the comm. */
static inline int wf_refuses(uint32_t kind) { return kind == WF_FAULT_TOO_LARGE || kind == WF_FAULT_AHEAD; }

/* Takes a request slot, unless most are in use; the last one freed is the one in the cache. */
static inline struct wf_req* wf_take(struct wf_comm* c, uint32_t* slot, uint32_t most) {
	uint32_t s = wf_get(c->free_head);
	if (wf_unlikely(wf_get(c->outstanding) >= most)) return NULL;
	if (wf_likely(s != WF_NONE)) {
		wf_put(c->free_head, wf_get(c->req[s].next));
	} else if (wf_likely((s = wf_get(c->slots)) < WF_SLOTS)) {
		wf_put(c->slots, s + 1);
	} else {
		s = wf_reclaim(c);
	}
	uint32_t gen = (wf_get(c->req_gen) + 1) & WF_GEN_MASK;
	if (!gen) gen = 1;
	wf_put(c->req_gen, gen);
	wf_put(c->outstanding, wf_get(c->outstanding) + 1);
	struct wf_req* r = &c->req[s];
	wf_put(r->gen, gen);
	wf_put(r->parts, 0u);
	wf_put(r->round, wf_get(c->round));
	*slot = s;
	return r;
}

static inline void wf_give(struct wf_comm* c, uint32_t slot) {
	struct wf_req* r = &c->req[slot];
	wf_put(r->gen, 0u);
	wf_put(r->state, (uint32_t)WF_REQ_FREE);
	wf_put(r->next, wf_get(c->free_head));
	wf_put(c->free_head, slot);
	wf_put(c->outstanding, wf_get(c->outstanding) - 1);
}

static inline void* wf_request(struct wf_comm* c, struct wf_req* r, uint32_t slot) {
	return (void*)(uintptr_t)wf_handle(WF_KIND_REQUEST, wf_get(r->gen), wf_get(c->index), slot);
}

/* Fills one entry after checking that the buffer lies inside a live registration of the comm's device. A receive may
 * end behind it, and then has room up to its end: NCCL 2.12 and 2.13 say more of a shared buffer than its slot has,
 * past the end of the pool. */
static inline int wf_buffer(struct wf_comm* c, struct wf_entry* e, void* data, uint64_t* room, int tag, void* mhandle,
	int recv) {
	uint64_t addr = (uint64_t)(uintptr_t)data, size = *room;
	if (wf_unlikely(size > WF_SIZE_MAX)) return wf_raise(WF_FAULT_ARGUMENT, "size above 2^31-1", 0, 0, 0, size);
	if (wf_likely(size)) {
		struct wf_mr* mr = wf_mr_lookup((uint64_t)(uintptr_t)mhandle);
		if (wf_unlikely(!mr || wf_get(mr->device) != wf_get(c->device))) {
			const char* what = mr ? "memory registered on another device" : "memory handle is not registered";
			return wf_raise(WF_FAULT_MR, what, 0, 0, size, addr);
		}
		uint64_t start = wf_get(mr->addr), length = wf_get(mr->length);
		if (wf_unlikely(addr < start || size > length || addr - start > length - size)) {
			if (!recv || addr < start || addr - start >= length)
				return wf_raise(WF_FAULT_MR, "buffer outside its registration", 0, 0, size, addr);
			*room = length - (addr - start);
		}
		uint64_t base = wf_get(c->lanes[0].streams) ? wf_get(mr->cpu) : wf_get(mr->base);
		if (wf_unlikely(!base))
			return wf_raise(WF_FAULT_MR, "memory that the CPU does not reach, over TCP", 0, 0, size, addr);
		addr = addr - start + base;
		uint32_t user = wf_load(mr->user), me = wf_get(c->index) + 1;
		if (wf_unlikely(user != me && user != WF_NONE)) /* deregMr holds the only user, or every comm */
			if (user || !__atomic_compare_exchange_n(&mr->user, &user, me, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
				wf_store(mr->user, WF_NONE);
	}
	wf_put(e->data, addr);
	wf_put(e->mr, (uint64_t)(uintptr_t)mhandle);
	wf_put(e->tag, tag);
	return 0;
}

/* Lets every lane start or continue posted sends, or look for what has arrived. The first without ops ends those
 * that have. */
static inline int wf_lanes(struct wf_comm* c, int send) {
	struct wf_lane* l = c->lanes;
	const struct wf_lane_ops* ops = wf_ops(l);
	if (send && !wf_get(c->unsent)) return 0;
	int rc = (send ? ops->send : ops->progress)(c, l);
	for (uint32_t n = wf_get(c->nlanes); wf_unlikely(n > 1) && rc >= 0 && (ops = wf_ops(++l)); n--)
		rc = (send ? ops->send : ops->progress)(c, l);
	return rc;
}

/* A comm of queue pairs: CTS and data lie in memory when they have arrived, and no call costs a system call. */
static inline int wf_direct(struct wf_comm* c) { return !wf_get(c->lanes[0].streams); }

/* What wf_begin leaves: first calls, wrong ones, and those that meet a held gate. */
static WF_COLD __attribute__((unused)) struct wf_comm* wf_begin_slowly(const char* call, uint32_t kind, void* comm,
	void** request, int* rc) {
	uint64_t h = (uint64_t)(uintptr_t)comm;
	struct wf_thread* t = wf_self;
	*request = NULL;
	if ((*rc = weft_forked())) return NULL;
	if (!t && !(t = wf_thread_join())) *rc = wf_bad(call, WF_FAULT_THREADS, "calling threads", 0);
	if (*rc) return NULL;
	struct wf_comm* c = wf_comm_lookup(h);
	if (c && wf_handle_kind(h) == kind) {
		if (!wf_enter(t, c)) return NULL; /* *rc is 0: try again */
		int same = wf_comm_lookup(h) == c; /* or the slab is another comm's by now */
		*rc = same ? (int)(uint32_t)wf_load(c->error) : 0;
		if (same && !*rc) return c;
		wf_leave(t);
		if (*rc) return NULL;
	}
	*rc = wf_bad(call, WF_FAULT_HANDLE, kind == WF_KIND_SEND ? "not a live send comm" : "not a live receive comm", h);
	return NULL;
}

/* What every call on a comm begins with. The comm, whose gate is entered by wf_self; NULL: the call returns *rc. */
static inline __attribute__((always_inline)) struct wf_comm* wf_begin(const char* call, uint32_t kind, void* comm,
	void** request, int* rc) {
	uint64_t h = (uint64_t)(uintptr_t)comm;
	struct wf_thread* t = wf_self;
	struct wf_comm* c = wf_handle_slot(h) ? NULL : wf_comm_at(wf_handle_slab(h));
	if (wf_likely(c && t) && wf_likely(wf_enter_own(t, c))) {
		if (wf_likely(wf_load(c->state) == WF_COMM_OPEN && wf_id(kind, wf_load(c->gen)) == wf_handle_id(h) &&
				wf_get(c->kind) == kind && !(uint32_t)wf_load(c->error))) {
			*request = NULL;
			return c;
		}
		wf_leave(t);
	}
	return wf_begin_slowly(call, kind, comm, request, rc);
}

#endif
