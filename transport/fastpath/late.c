/* late.c: flushes that met a gate which another thread holds. iflush cannot say "not now", since no request means
 * that nothing is to be flushed, and it must not wait, since the thread is NCCL's. So it writes down what is to be
 * flushed and returns a request, whose test begins the flush when the gate is free. When it is not for WF_LATE_MOST,
 * the comm ends. */
#include "exec.h"

#define WF_LATE_MOST 11ull /* seconds: the core waits for a gate one less (hold.go) */

/* Outside the gate. The request, none where nothing is to be flushed ever, or a code. */
int wf_flush_late(uint64_t h, void* data, int size, void* mhandle, void** request) {
	static uint32_t gens; /* of all comms: a slab's next comm takes no late flush of this one for its own */
	struct wf_comm* c = wf_comm_lookup(h);
	if (!c) return wf_bad("iflush", WF_FAULT_HANDLE, "not a live receive comm", h); /* closed meanwhile */
	int code = (int)(uint32_t)wf_load(c->error);
	if (code || !size || !wf_ops(&c->lanes[0])->land) return code;
	for (uint32_t i = 0; i < WF_LATES; i++) {
		struct wf_late* late = &c->late[i];
		uint32_t none = 0;
		if (wf_load(late->gen) ||
				!__atomic_compare_exchange_n(&late->gen, &none, WF_NONE, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		uint32_t gen = __atomic_add_fetch(&gens, 1, __ATOMIC_RELAXED) & WF_GEN_MASK;
		if (!gen) gen = 1;
		wf_put(late->data, (uint64_t)(uintptr_t)data);
		wf_put(late->size, (uint32_t)size);
		wf_put(late->mr, (uint64_t)(uintptr_t)mhandle);
		wf_put(late->deadline, wf_clock() + WF_LATE_MOST * 1000000000u);
		wf_put(late->request, (uint64_t)0);
		wf_store(late->gen, gen);
		*request = (void*)(uintptr_t)wf_handle(WF_KIND_REQUEST, gen, wf_get(c->index), WF_SLOTS + i);
		return 0;
	}
	return wf_bad("iflush", WF_FAULT_ARGUMENT, "too many flushes that are not tested", WF_LATES);
}

/* What wf_flush_late has returned. NULL: it is no such request, or no longer one. */
static struct wf_late* wf_late_of(struct wf_comm* c, uint64_t h) {
	uint32_t i = wf_handle_slot(h) - WF_SLOTS;
	if (!c || i >= WF_LATES || wf_load(c->state) != WF_COMM_OPEN || !wf_handle_gen(h)) return NULL;
	return wf_id(WF_KIND_REQUEST, wf_load(c->late[i].gen)) == wf_handle_id(h) ? &c->late[i] : NULL;
}

/* Begins the flush if the gate is free. 0: *request is its own request, or NULL, and *begun says whether it has
 * begun. */
static int wf_late_begin(struct wf_thread* t, struct wf_comm* c, struct wf_late* late, uint64_t h, void** request,
	int* begun) {
	if (!wf_enter(t, c)) {
		int code = (int)(uint32_t)wf_load(c->error);
		if (code || wf_clock() < wf_get(late->deadline)) return code;
		wf_raise(WF_FAULT_HELD, "iflush", 0, 0, WF_LATE_MOST, 0);
		return wf_leave_fault(t, c, "iflush");
	}
	int same = wf_late_of(c, h) == late; /* or the slab is another comm's by now */
	int code = same ? (int)(uint32_t)wf_load(c->error) : 0;
	if (!same || code) {
		wf_leave(t);
		return code ? code : wf_bad("test", WF_FAULT_HANDLE, "not a request", h);
	}
	*begun = 1;
	code = wf_flush(t, c, (void*)(uintptr_t)wf_get(late->data), (int)wf_get(late->size),
		(void*)(uintptr_t)wf_get(late->mr), request);
	wf_store(late->request, (uint64_t)(uintptr_t)*request);
	return code;
}

/* test of such a request; *done is 0. */
int wf_late_test(struct wf_thread* t, uint64_t h, int* done, int* sizes) {
	struct wf_comm* c = wf_comm_at(wf_handle_slab(h));
	struct wf_late* late = wf_late_of(c, h);
	if (!late) return wf_bad("test", WF_FAULT_HANDLE, "not a request", h);
	void* request = (void*)(uintptr_t)wf_load(late->request);
	int begun = request != NULL, rc = begun ? 0 : wf_late_begin(t, c, late, h, &request, &begun);
	if (rc || !begun) return rc;
	if (request) {
		rc = weft_test(request, done, sizes);
	} else {
		*done = 1;
		if (sizes) *sizes = (int)wf_get(late->size);
	}
	if (*done) wf_store(late->gen, 0u);
	return rc;
}
