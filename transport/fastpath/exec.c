/* exec.c: irecv, iflush and test; isend is in send.c. How a message moves:
 *
 *  1. irecv takes a request slot for its group and as many CTS lines as it has receives, and queues their CTS.
 *  2. The CTS reaches the sender's ring. isend matches the first unmatched line of its tag in the head group.
 *  3. When every line of the head group is matched, the group is posted: its sends stand in the queue, and the next
 *     group becomes the head.
 *  4. Lanes take from the queue, piecewise, inside isend and test, and the receiver's lanes fill the buffers inside
 *     test.
 *  5. test reports a request once and frees its slot.
 *  6. Queued CTS leave when a comm has four, after an isend's data, and whenever a call finds nothing else to do.
 *     While messages come ahead of their CTS, nobody needs it soon, and it is held back until there are many more.
 *
 * A fault raised inside the gate is reported after leaving it, so that the core may hold the gate meanwhile. */
#include "ahead.h"

#define WF_FLUSH_COMMS 64 /* comms of the output list that one call visits */
#define WF_LAZY_COMMS 4   /* of those, whose output waits for company: they stay on the list for many calls */
#define WF_INTERNAL_ERROR 3  /* ncclInternalError, in every table */

int wf_raise(uint32_t kind, const char* where, int err, uint64_t seq, uint64_t want, uint64_t got) {
	wf_self->fault = (struct wf_fault){.kind = kind, .err = err, .seq = seq, .want = want, .got = got, .where = where};
	return -1;
}

/* Reports a fault that no comm has. Outside the gate. In a forked child there is no core to hear it. */
int wf_bad(const char* call, uint32_t kind, const char* where, uint64_t got) {
	int rc = weft_forked();
	if (rc) return rc;
	const struct wf_upcalls* up = wf_default_upcalls();
	struct wf_fault f = {.kind = kind, .got = got, .where = where, .call = call};
	return up ? up->fault(0, &f) : WF_INTERNAL_ERROR;
}

int weft_null(const char* function, const char* name) { return wf_bad(function, WF_FAULT_NULL, name, 0); }
int weft_misuse(const char* function, const char* what, uint64_t got) {
	return wf_bad(function, WF_FAULT_ARGUMENT, what, got);
}

/* Leaves the gate, reports the fault that was raised inside and, where it ends the comm, lets the comm fail. */
int wf_leave_fault(struct wf_thread* t, struct wf_comm* c, const char* call) {
	const struct wf_upcalls* up = (const struct wf_upcalls*)(uintptr_t)wf_get(c->upcalls);
	uint64_t cookie = wf_get(c->cookie);
	uint32_t gen = wf_get(c->gen);
	struct wf_fault f = t->fault;
	t->fault.kind = 0;
	f.call = call;
	wf_leave(t);
	int code = up ? up->fault(cookie, &f) : 0;
	if (!code) code = WF_INTERNAL_ERROR;
	if (wf_refuses(f.kind)) { /* the code comes with the group's requests */
		wf_store(c->refuse_code, (uint32_t)code);
		return 0;
	}
	if (f.kind <= WF_FAULT_PROTOCOL || f.kind >= WF_FAULT_INTERNAL) wf_comm_fail(c, gen, code);
	return code;
}

static WF_COLD void wf_wants(struct wf_thread* t) {
	const struct wf_upcalls* up = wf_default_upcalls();
	uint64_t cookie = wf_get(t->wants);
	wf_put(t->wants, (uint64_t)0);
	if (up) up->wants(cookie);
}

/* Sends queued output of the thread's comms, at most WF_FLUSH_COMMS of them. Outside the gate. */
void wf_flush_list(struct wf_thread* t, const char* call) {
	struct wf_comm* first = NULL;
	for (uint32_t i = 0, lazy; i < WF_FLUSH_COMMS; i += lazy ? WF_FLUSH_COMMS / WF_LAZY_COMMS : 1) {
		struct wf_comm* c = (struct wf_comm*)(uintptr_t)wf_load(t->list_head);
		if (!c || c == first) return;
		if (!wf_enter_own(t, c)) return; /* held, or moving to another thread: the holder needs its turn */
		int listed = wf_load(c->listed) == (uint64_t)(uintptr_t)t; /* or it was closed meanwhile */
		lazy = listed ? wf_get(c->lazy) : 0;
		int left = lazy > 0;
		if (lazy) wf_put(c->lazy, lazy - 1);
		if (listed) wf_unlist(c);
		for (uint32_t n = 0; listed && !lazy && n < wf_get(c->nlanes) && !(uint32_t)wf_load(c->error) && left >= 0;
				n++) {
			int rc = wf_ops(&c->lanes[n]) ? wf_ops(&c->lanes[n])->flush(c, &c->lanes[n]) : 0;
			left = rc < 0 ? rc : left | rc;
		}
		if (left > 0) {
			wf_list(t, c);
			first = first ? first : c;
		}
		if (left < 0) wf_leave_fault(t, c, call);
		wf_leave(t);
		if (wf_unlikely(wf_get(t->wants))) wf_wants(t);
	}
}

int weft_irecv(void* recvComm, int n, void** data, size_t* sizes, int* tags, void** mhandles, void** phandles,
	void** request) {
	int rc;
	struct wf_comm* c = wf_begin("irecv", WF_KIND_RECV, recvComm, request, &rc);
	if (wf_unlikely(!c)) return rc ? wf_ended(rc, "irecv", WF_KIND_RECV, recvComm, n, sizes, request) : 0;
	struct wf_thread* t = wf_self;
	uint32_t slot, line = wf_get(c->next_line);
	struct wf_req* r = line + (uint32_t)n - wf_get(c->tail_line) > WF_LINES ? NULL : wf_take(c, &slot, WF_REQUESTS);
	if (wf_unlikely(!r)) { /* lines may wait for CTS that could not leave */
		wf_leave(t);
		if (wf_load(t->list_head)) wf_flush_list(t, "irecv");
		return 0;
	}
	for (int i = 0; i < n; i++) {
		uint64_t room = sizes[i];
		if (wf_unlikely(wf_buffer(c, &r->e[i], data[i], &room, tags[i], mhandles[i], 1) < 0)) {
			wf_give(c, slot);
			return wf_leave_fault(t, c, "irecv");
		}
		wf_put(r->e[i].cap, (uint32_t)room);
		wf_put(r->e[i].size, WF_NONE);
		wf_put(r->e[i].got, 0u);
	}
	uint64_t seq = wf_get(c->next_seq);
	wf_put(r->n, (uint32_t)n);
	wf_put(r->left, (uint32_t)n);
	wf_put(r->came, 0u);
	wf_put(r->seq, seq);
	wf_put(r->line, line);
	wf_put(r->state, (uint32_t)WF_REQ_POSTED);
	wf_put(c->group[seq % WF_LINES], slot);
	wf_put(c->next_seq, seq + 1);
	wf_put(c->next_line, line + (uint32_t)n);
	wf_put(c->incomplete, wf_get(c->incomplete) + 1);
	*request = wf_request(c, r, slot);
	if (wf_unlikely(wf_get(c->events))) wf_events_start(c, slot, phandles);
	rc = wf_direct(c) ? wf_ops(&c->lanes[0])->flush(c, &c->lanes[0]) : wf_ahead_posted(t, c, r);
	if (wf_get(c->cts_out) != seq + 1) wf_list(t, c);
	if (wf_unlikely(rc < 0)) {
		wf_leave_fault(t, c, "irecv"); /* test tells */
		return 0;
	}
	wf_leave(t);
	return 0;
}

/* Flushes; called inside the gate, which it leaves. Lanes without a land call need no flush: their data is in place
 * as soon as the receive is done. */
int wf_flush(struct wf_thread* t, struct wf_comm* c, void* data, int size, void* mhandle, void** request) {
	const struct wf_lane_ops* ops = wf_ops(&c->lanes[0]);
	const struct wf_upcalls* up = (const struct wf_upcalls*)(uintptr_t)wf_get(c->upcalls);
	uint64_t cookie = wf_get(c->cookie);
	int rc = ops->land && size ? ops->land(c, data, (uint64_t)size, mhandle, request) : 0;
	if (wf_unlikely(rc < 0)) {
		*request = NULL;
		return wf_leave_fault(t, c, "iflush");
	}
	wf_leave(t);
	if (wf_unlikely(rc > 0)) up->wants(cookie);
	return 0;
}

/* One read serves a whole group: of its last buffer that brought something, of a GPU's if there is one. */
int weft_iflush(void* recvComm, int n, void** data, int* sizes, void** mhandles, void** request) {
	int rc = 0, last = 0;
	*request = NULL;
	for (int i = 0; i < n; i++) {
		if (wf_unlikely(sizes[i] < 0)) return weft_misuse("iflush", "size is negative", (uint64_t)sizes[i]);
		struct wf_mr* mr = n > 1 ? wf_mr_lookup((uint64_t)(uintptr_t)mhandles[i]) : NULL;
		if (sizes[i] && (!sizes[last] || !mr || wf_get(mr->kind) != WF_MEM_HOST)) last = i;
	}
	struct wf_comm* c = wf_begin("iflush", WF_KIND_RECV, recvComm, request, &rc);
	if (wf_likely(c)) return wf_flush(wf_self, c, data[last], sizes[last], mhandles[last], request);
	return rc ? rc : wf_flush_late((uint64_t)(uintptr_t)recvComm, data[last], sizes[last], mhandles[last], request);
}

/* Makes progress for a request that is not done. A receive's CTS goes first, unless messages come ahead of theirs.
 * Lanes are polled once per round: when a request comes by for the second time. */
static int wf_progress(struct wf_comm* c, struct wf_req* r) {
	uint32_t round = wf_get(c->round), again = wf_get(r->round) == round, recv = wf_get(c->kind) == WF_KIND_RECV;
	if (recv && wf_get(r->seq) >= wf_get(c->cts_out) && !wf_get(c->lazy))
		return wf_ops(&c->lanes[0])->flush(c, &c->lanes[0]);
	round += again;
	wf_put(c->round, round);
	wf_put(r->round, round);
	if (!again || recv || wf_direct(c)) return again ? wf_lanes(c, 0) : 0;
	wf_put(c->push, wf_get(c->push) + 1);
	return wf_lanes(c, 1) < 0 || (wf_get(r->state) != WF_REQ_POSTED && wf_poll_cts(c) < 0) ? -1 : 0;
}

/* A refused request is over once no stream is in the middle of its bytes. */
static inline int wf_over(struct wf_req* r) {
	uint32_t state = wf_get(r->state);
	return state >= WF_REQ_DONE &&
		(state == WF_REQ_DONE || state == WF_REQ_TOLD ||
		(state == WF_REQ_REFUSED && !wf_get(r->left) && !wf_get(r->parts)));
}

int weft_test(void* request, int* done, int* sizes) {
	struct wf_thread* t = wf_self;
	uint64_t h = (uint64_t)(uintptr_t)request;
	if (wf_unlikely(!t) && wf_load(wf_forked_child)) return weft_forked();
	if (wf_unlikely(!t) && !(t = wf_thread_join())) return wf_bad("test", WF_FAULT_THREADS, "calling threads", 0);
	*done = 0;
	uint32_t slot = wf_handle_slot(h);
	if (wf_unlikely(slot >= WF_SLOTS)) return wf_late_test(t, h, done, sizes);
	struct wf_comm* c = wf_comm_at(wf_handle_slab(h));
	if (wf_unlikely(!c || wf_load(c->state) != WF_COMM_OPEN))
		return wf_bad("test", WF_FAULT_HANDLE, "not a request", h);
	if (wf_unlikely(!wf_enter(t, c))) return 0;
	struct wf_req* r = &c->req[slot];
	if (wf_unlikely(wf_load(c->state) != WF_COMM_OPEN || wf_id(WF_KIND_REQUEST, wf_get(r->gen)) != wf_handle_id(h))) {
		wf_leave(t);
		return wf_bad("test", WF_FAULT_HANDLE, "request is not in flight: it was done before, or its comm was closed",
			h);
	}
	int rc = 0, code = 0, over = wf_over(r);
	if (!over) {
		code = (int)(uint32_t)wf_load(c->error);
		if (wf_unlikely(code)) {
			if (wf_get(c->events)) wf_events_stop(c, slot);
			wf_leave(t);
			return code;
		}
		rc = wf_progress(c, r);
		over = wf_over(r) && !(wf_unlikely(rc < 0) && wf_refuses(t->fault.kind)); /* the core names that code first */
	}
	if (over) {
		*done = 1;
		if (wf_unlikely(wf_get(r->state) != WF_REQ_DONE)) {
			code = (int)wf_load(c->refuse_code);
			if (wf_get(r->state) == WF_REQ_REFUSED) {
				wf_put(r->state, (uint32_t)WF_REQ_TOLD);
				wf_put(c->outstanding, wf_get(c->outstanding) - 1);
			}
		} else {
			if (sizes) {
				*sizes = (int)wf_get(r->e[0].size);
				for (uint32_t i = 1; wf_unlikely(i < wf_get(r->n)); i++) sizes[i] = (int)wf_get(r->e[i].size);
			}
			wf_give(c, slot);
		}
	}
	if (wf_unlikely(rc < 0)) {
		if (!over && wf_get(c->events) && !wf_refuses(t->fault.kind)) wf_events_stop(c, slot);
		rc = wf_leave_fault(t, c, "test");
		return over ? code : rc; /* what was done before the fault is still done */
	}
	wf_leave(t);
	if (!over && wf_unlikely(wf_load(t->list_head))) wf_flush_list(t, "test");
	return code;
}

int weft_test_waits(void* request) {
	struct wf_thread* t = wf_self;
	uint64_t h = (uint64_t)(uintptr_t)request;
	uint32_t slot = wf_handle_slot(h);
	struct wf_comm* c = t && slot < WF_SLOTS ? wf_comm_at(wf_handle_slab(h)) : NULL;
	if (!c || wf_load(c->state) != WF_COMM_OPEN || !wf_enter_own(t, c)) return -1;
	struct wf_req* r = &c->req[slot];
	int rc = wf_load(c->state) != WF_COMM_OPEN || wf_id(WF_KIND_REQUEST, wf_get(r->gen)) != wf_handle_id(h) ||
		(uint32_t)wf_load(c->error) ? -1 : 0;
	if (!rc && !wf_over(r)) rc = wf_progress(c, r);
	int waits = rc < 0 ? -1 : !wf_over(r);
	if (wf_unlikely(t->fault.kind)) wf_leave_fault(t, c, "test"); /* test has the code from the comm */
	else wf_leave(t);
	if (waits > 0 && wf_load(t->list_head)) wf_flush_list(t, "test");
	return waits;
}

/* Every slot is in use or told: those that are told become free, and one of them is returned. */
uint32_t wf_reclaim(struct wf_comm* c) {
	uint32_t told = WF_NONE;
	for (uint32_t i = 0; i < WF_SLOTS; i++)
		if (wf_get(c->req[i].state) == WF_REQ_TOLD) {
			wf_put(c->req[i].next, told);
			told = i;
		}
	wf_put(c->free_head, wf_get(c->req[told].next));
	return told;
}

/* Ends a group of receives and frees lines in order. */
void wf_end_group(struct wf_comm* c, struct wf_req* r, uint32_t state) {
	wf_put(r->state, state);
	if (wf_unlikely(wf_get(c->events))) wf_events_stop(c, (uint32_t)(r - c->req));
	wf_put(r->left, 0u);
	wf_put(c->incomplete, wf_get(c->incomplete) - 1);
	wf_put(c->group[wf_get(r->seq) % WF_LINES], WF_GROUP_DONE | wf_get(r->n));
	wf_lines_free(c);
}

/* Lines are free, in order, when their group is complete and its CTS is out. */
void wf_lines_free(struct wf_comm* c) {
	uint64_t seq = wf_get(c->tail_seq), out = wf_get(c->cts_out);
	uint32_t line = wf_get(c->tail_line), group;
	for (; seq < out && (group = wf_get(c->group[seq % WF_LINES])) & WF_GROUP_DONE; seq++)
		line += group & ~WF_GROUP_DONE;
	wf_put(c->tail_seq, seq);
	wf_put(c->tail_line, line);
}

/* The group's last byte may have arrived. */
void wf_arrived(struct wf_comm* c, uint32_t slot) {
	struct wf_req* r = &c->req[slot];
	uint32_t parts = wf_get(r->parts) - 1, n = wf_get(r->n);
	uint64_t bytes = wf_get(c->bytes) + wf_get(r->e[0].size);
	wf_put(r->parts, parts);
	if (parts || wf_get(r->left) || wf_get(r->state) != WF_REQ_POSTED) return;
	for (uint32_t i = 1; i < n; i++) bytes += wf_get(r->e[i].size);
	wf_put(c->bytes, bytes);
	wf_put(c->messages, wf_get(c->messages) + n);
	wf_end_group(c, r, WF_REQ_DONE);
}

/* The sender refused the group, whose CTS it has. 1: it was open; 2: it was refused here before; 0: neither. */
int wf_comm_refuse(struct wf_comm* c, uint64_t seq, int32_t code) {
	if (wf_get(c->kind) != WF_KIND_RECV || !seq || seq >= wf_get(c->cts_out) || seq + WF_LINES < wf_get(c->next_seq))
		return 0;
	uint32_t slot = wf_get(c->group[seq % WF_LINES]);
	if (slot & WF_GROUP_DONE) return wf_get(c->refusals[seq % WF_LINES].seq) == seq ? 2 : 0;
	wf_store(c->refuse_code, (uint32_t)code);
	if (!wf_direct(c)) wf_refuse_receives(c, &c->req[slot]);
	else wf_end_group(c, &c->req[slot], WF_REQ_REFUSED);
	return 1;
}
