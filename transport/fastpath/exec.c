/* exec.c: isend, irecv, iflush and test, the calls that move data.
 *
 *  1. irecv takes a request slot for its group and as many CTS lines as it has receives, and queues their CTS.
 *  2. The CTS reaches the sender's ring. isend matches the first unmatched line of its tag in the head group.
 *  3. When every line of the head group is matched, the group is posted: its sends stand in tx, in order, and the next
 *     group becomes the head.
 *  4. Lanes take from tx, piecewise, inside isend and test, and the receiver's lanes fill the buffers inside test.
 *  5. test reports a request once and frees its slot.
 *  6. Queued CTS leave with the fourth of a comm, after an isend's data, and whenever a call finds nothing to do.
 *
 * A fault raised inside the gate is reported after leaving it, so that the core may hold the gate meanwhile. */
#include "gate.h"

#define WF_FLUSH_COMMS 64 /* comms of the output list that one call visits */
#define WF_INTERNAL_ERROR 3  /* ncclInternalError, in every table */

int wf_raise(uint32_t kind, const char* where, int err, uint64_t seq, uint64_t want, uint64_t got) {
	wf_self->fault = (struct wf_fault){.kind = kind, .err = err, .seq = seq, .want = want, .got = got, .where = where};
	return -1;
}

/* Reports a fault that no comm has. Outside the gate. */
static int wf_bad(const char* call, uint32_t kind, const char* where, uint64_t got) {
	const struct wf_upcalls* up = wf_default_upcalls();
	struct wf_fault f = {.kind = kind, .got = got, .where = where, .call = call};
	return up ? up->fault(0, &f) : WF_INTERNAL_ERROR;
}

int weft_misuse(const char* function, const char* what) { return wf_bad(function, WF_FAULT_ARGUMENT, what, 0); }

/* Leaves the gate, reports the fault that was raised inside and, where it ends the comm, lets the comm fail. */
static int wf_leave_fault(struct wf_thread* t, struct wf_comm* c, const char* call) {
	const struct wf_upcalls* up = (const struct wf_upcalls*)(uintptr_t)wf_get(c->upcalls);
	uint64_t cookie = wf_get(c->cookie);
	uint32_t gen = wf_get(c->gen);
	struct wf_fault f = t->fault;
	t->fault.kind = 0;
	f.call = call;
	wf_leave(t);
	int code = up ? up->fault(cookie, &f) : WF_INTERNAL_ERROR;
	if (f.kind <= WF_FAULT_PROTOCOL || f.kind == WF_FAULT_INTERNAL) wf_comm_fail(c, gen, code);
	else if (f.kind == WF_FAULT_TOO_LARGE && code) wf_store(c->refuse_code, (uint32_t)code);
	return code;
}

static inline const struct wf_lane_ops* wf_ops(struct wf_lane* l) { return (const struct wf_lane_ops*)(uintptr_t)wf_get(l->ops); }

/* Sends queued output of the thread's comms, at most WF_FLUSH_COMMS of them. Outside the gate. */
static void wf_flush_list(struct wf_thread* t, const char* call) {
	struct wf_comm* first = NULL;
	for (int i = 0; i < WF_FLUSH_COMMS; i++) {
		struct wf_comm* c = (struct wf_comm*)(uintptr_t)wf_load(t->list_head);
		if (!c || c == first) return;
		if (!wf_enter_own(t, c)) return; /* held, or moving to another thread: the holder needs its turn */
		if (wf_load(c->listed) != (uint64_t)(uintptr_t)t) { /* closed meanwhile */
			wf_leave(t);
			continue;
		}
		wf_unlist(c);
		int left = 0;
		for (uint32_t n = 0; n < wf_get(c->nlanes) && !(uint32_t)wf_load(c->error) && left >= 0; n++) {
			int rc = wf_ops(&c->lanes[n])->flush(c, &c->lanes[n]);
			left = rc < 0 ? rc : left | rc;
		}
		if (left > 0) wf_list(t, c);
		if (left > 0 && !first) first = c;
		if (left < 0) wf_leave_fault(t, c, call);
		wf_leave(t);
	}
}

/* Takes a request slot; the last one freed is the one in the cache. */
static inline struct wf_req* wf_take(struct wf_comm* c, uint32_t* slot) {
	uint32_t s = wf_get(c->free_head);
	if (s != WF_NONE) {
		wf_put(c->free_head, wf_get(c->req[s].next));
	} else {
		s = wf_get(c->slots);
		if (s == WF_REQUESTS) return NULL;
		wf_put(c->slots, s + 1);
	}
	uint32_t gen = (wf_get(c->req_gen) + 1) & WF_GEN_MASK;
	if (!gen) gen = 1;
	wf_put(c->req_gen, gen);
	wf_put(c->outstanding, wf_get(c->outstanding) + 1);
	struct wf_req* r = &c->req[s];
	wf_put(r->gen, gen);
	wf_put(r->frames, 0u);
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

/* Fills one entry after checking that the buffer lies inside a live registration of the comm's device. */
static inline int wf_buffer(struct wf_comm* c, struct wf_entry* e, void* data, uint64_t size, int tag, void* mhandle) {
	uint64_t addr = (uint64_t)(uintptr_t)data;
	if (wf_unlikely(size > WF_SIZE_MAX)) return wf_raise(WF_FAULT_ARGUMENT, "size above 2^31-1", 0, 0, WF_SIZE_MAX, size);
	if (wf_likely(size)) {
		struct wf_mr* mr = wf_mr_lookup((uint64_t)(uintptr_t)mhandle);
		if (wf_unlikely(!mr || wf_get(mr->device) != wf_get(c->device)))
			return wf_raise(WF_FAULT_MR, mr ? "memory registered on another device" : "memory handle is not registered", 0, 0, size, addr);
		uint64_t start = wf_get(mr->addr), length = wf_get(mr->length);
		if (wf_unlikely(addr < start || size > length || addr - start > length - size))
			return wf_raise(WF_FAULT_MR, "buffer outside its registration", 0, 0, size, addr);
		addr = addr - start + wf_get(mr->base);
		uint32_t user = wf_load(mr->user), me = wf_get(c->index) + 1;
		if (wf_unlikely(user != me && user != WF_NONE)) /* deregMr holds the only user, or every comm */
			if (user || !__atomic_compare_exchange_n(&mr->user, &user, me, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) wf_store(mr->user, WF_NONE);
	}
	wf_put(e->data, addr);
	wf_put(e->mr, (uint64_t)(uintptr_t)mhandle);
	wf_put(e->tag, tag);
	return 0;
}

/* Lets every lane start or continue posted sends, or look for what has arrived. */
static inline int wf_lanes(struct wf_comm* c, int send) {
	int rc = 0;
	if (send && !wf_get(c->unsent)) return 0;
	for (uint32_t n = 0; n < wf_get(c->nlanes) && rc >= 0; n++)
		rc = (send ? wf_ops(&c->lanes[n])->send : wf_ops(&c->lanes[n])->progress)(c, &c->lanes[n]);
	return rc;
}

/* The head group's first unmatched line of that tag, or -1; *n: receives in the group, 0: no group yet. */
static inline int wf_match(struct wf_comm* c, int tag, uint32_t* n) {
	struct wf_cts_line* line = &c->ring[wf_get(c->head_line) % WF_LINES];
	uint64_t seq = wf_get(c->head_seq);
	*n = wf_load(line[0].seq) == seq ? wf_get(line[0].n_i) >> 16 : 0;
	for (uint32_t i = 0; i < *n && wf_load(line[i].seq) == seq; i++)
		if (!(wf_get(c->head_mask) >> i & 1) && wf_get(line[i].tag) == tag) return (int)i;
	return -1;
}

/* Ends the group's matched sends; those still to come end at once. */
static void wf_refuse_group(struct wf_comm* c) {
	for (uint32_t i = 0; i < WF_GROUP; i++)
		if (wf_get(c->head_mask) >> i & 1) wf_put(c->req[wf_get(c->match[i])].state, (uint32_t)WF_REQ_REFUSED);
	wf_put(c->head_refused, 1u);
}

/* Every line of the head group is matched: post its sends, unless it was refused, and move the head. */
static int wf_post_group(struct wf_comm* c, uint32_t n) {
	int refused = (int)wf_get(c->head_refused);
	uint32_t tail = wf_get(c->tx_tail);
	for (uint32_t i = 0; i < n && !refused; i++) {
		uint32_t slot = wf_get(c->match[i]);
		wf_put(c->req[slot].state, (uint32_t)WF_REQ_POSTED);
		wf_put(c->tx[tail++ % WF_REQUESTS], slot);
	}
	wf_put(c->tx_tail, tail);
	wf_put(c->head_seq, wf_get(c->head_seq) + 1);
	wf_put(c->head_line, wf_get(c->head_line) + n);
	wf_put(c->head_mask, 0u);
	wf_put(c->head_refused, 0u);
	if (refused) return 0;
	wf_put(c->unsent, wf_get(c->unsent) + n);
	return wf_lanes(c, 1);
}

/* What every call on a comm begins with. 1: inside the gate of *c; 0: *rc is the answer. */
static inline int wf_begin(const char* call, uint32_t kind, void* comm, void** request, struct wf_thread** t, struct wf_comm** c, int* rc) {
	uint64_t h = (uint64_t)(uintptr_t)comm;
	*t = wf_self;
	*rc = wf_unlikely(wf_load(wf_forked_child)) ? weft_forked() : 0;
	if (wf_likely(request)) *request = NULL;
	if (wf_unlikely(*rc)) return 0;
	if (wf_unlikely(!*t) && !(*t = wf_thread_join())) *rc = wf_bad(call, WF_FAULT_INTERNAL, "too many calling threads", 0);
	else if (wf_unlikely(!request)) *rc = wf_bad(call, WF_FAULT_ARGUMENT, "request is NULL", 0);
	if (wf_unlikely(*rc)) return 0;
	*c = wf_comm_lookup(h);
	if (wf_likely(*c && wf_handle_kind(h) == kind)) {
		if (wf_unlikely(!wf_enter(*t, *c))) return 0; /* *rc is 0: try again */
		*rc = (int)(uint32_t)wf_load((*c)->error);
		if (wf_likely(!*rc && wf_load((*c)->state) == WF_COMM_OPEN)) return 1;
		wf_leave(*t);
		if (*rc) return 0;
	}
	*rc = wf_bad(call, WF_FAULT_HANDLE, kind == WF_KIND_SEND ? "not a live send comm" : "not a live receive comm", h);
	return 0;
}

int weft_isend(void* sendComm, void* data, size_t size, int tag, void* mhandle, void* phandle, void** request) {
	struct wf_thread* t;
	struct wf_comm* c;
	int rc;
	if (wf_unlikely(!wf_begin("isend", WF_KIND_SEND, sendComm, request, &t, &c, &rc))) return rc;
	uint32_t n, slot;
	int i = wf_match(c, tag, &n);
	if (i < 0) {
		if (wf_lanes(c, 1) < 0 || wf_lanes(c, 0) < 0) return wf_leave_fault(t, c, "isend");
		i = wf_match(c, tag, &n);
	}
	struct wf_req* r = i < 0 ? NULL : wf_take(c, &slot);
	if (!r) goto leave;
	if (wf_unlikely(wf_buffer(c, &r->e[0], data, size, tag, mhandle) < 0)) {
		wf_give(c, slot);
		return wf_leave_fault(t, c, "isend");
	}
	wf_put(r->e[0].size, (uint32_t)size);
	wf_put(r->n, 1u);
	wf_put(r->seq, wf_get(c->head_seq));
	wf_put(r->entry, (uint32_t)i);
	wf_put(r->cursor, 0u);
	wf_put(r->phandle[0], (uint64_t)(uintptr_t)phandle);
	wf_put(r->state, (uint32_t)(wf_get(c->head_refused) ? WF_REQ_REFUSED : WF_REQ_MATCHED));
	wf_put(c->match[i], slot);
	uint32_t mask = wf_get(c->head_mask) | 1u << i;
	wf_put(c->head_mask, mask);
	uint64_t seq = wf_get(c->head_seq), room = wf_get(c->ring[wf_get(c->head_line) % WF_LINES + (uint32_t)i].size);
	if (wf_unlikely(size > room && !wf_get(c->head_refused))) {
		wf_refuse_group(c);
		rc = wf_raise(WF_FAULT_TOO_LARGE, "send is larger than its receive", 0, seq, room, size);
		wf_self->fault.entry = (uint32_t)i;
	}
	*request = wf_request(c, r, slot);
	if (mask == (1u << n) - 1 && wf_post_group(c, n) < 0) { /* a lane failed: the code is the answer */
		*request = NULL;
		return wf_leave_fault(t, c, "isend");
	}
	if (wf_unlikely(rc < 0)) wf_leave_fault(t, c, "isend");
leave:
	wf_leave(t);
	wf_flush_list(t, "isend");
	return 0;
}

int weft_irecv(void* recvComm, int n, void** data, size_t* sizes, int* tags, void** mhandles, void** phandles, void** request) {
	struct wf_thread* t;
	struct wf_comm* c;
	int rc;
	if (wf_unlikely(!wf_begin("irecv", WF_KIND_RECV, recvComm, request, &t, &c, &rc))) return rc;
	if (wf_unlikely(n < 1 || n > WF_GROUP)) {
		wf_raise(WF_FAULT_ARGUMENT, "number of grouped receives", 0, 0, WF_GROUP, (uint64_t)(int64_t)n);
		return wf_leave_fault(t, c, "irecv");
	}
	uint32_t slot, line = wf_get(c->next_line);
	struct wf_req* r = line + (uint32_t)n - wf_get(c->tail_line) > WF_LINES ? NULL : wf_take(c, &slot);
	if (!r) goto leave;
	for (int i = 0; i < n; i++) {
		if (wf_unlikely(wf_buffer(c, &r->e[i], data ? data[i] : NULL, sizes[i], tags ? tags[i] : 0, mhandles ? mhandles[i] : NULL) < 0)) {
			wf_give(c, slot);
			return wf_leave_fault(t, c, "irecv");
		}
		wf_put(r->e[i].cap, (uint32_t)sizes[i]);
		wf_put(r->e[i].size, WF_NONE);
		wf_put(r->e[i].got, 0u);
		wf_put(r->phandle[i], phandles ? (uint64_t)(uintptr_t)phandles[i] : 0);
	}
	uint64_t seq = wf_get(c->next_seq);
	wf_put(r->n, (uint32_t)n);
	wf_put(r->left, (uint32_t)n);
	wf_put(r->seq, seq);
	wf_put(r->line, line);
	wf_put(r->state, (uint32_t)WF_REQ_POSTED);
	wf_put(c->group[seq % WF_LINES], slot);
	wf_put(c->next_seq, seq + 1);
	wf_put(c->next_line, line + (uint32_t)n);
	wf_put(c->incomplete, wf_get(c->incomplete) + 1);
	*request = wf_request(c, r, slot);
	struct wf_lane* l = &c->lanes[0];
	rc = wf_ops(l)->cts(c, l, slot);
	if (rc == 0 && seq + 1 - wf_get(c->cts_out) >= WF_CTS_BATCH) rc = wf_ops(l)->flush(c, l) < 0 ? -1 : 0;
	if (wf_unlikely(rc < 0)) {
		*request = NULL;
		return wf_leave_fault(t, c, "irecv");
	}
	if (wf_get(c->cts_out) != seq + 1) wf_list(t, c);
leave:
	wf_leave(t);
	return 0;
}

/* Host memory: data is where it belongs as soon as the receive is done, so there is nothing to flush. */
int weft_iflush(void* recvComm, int n, void** data, int* sizes, void** mhandles, void** request) {
	struct wf_thread* t;
	struct wf_comm* c;
	int rc;
	(void)n, (void)data, (void)sizes, (void)mhandles;
	if (wf_begin("iflush", WF_KIND_RECV, recvComm, request, &t, &c, &rc)) wf_leave(t);
	return rc;
}

/* Work for a request that is not done. Nothing can have arrived for a receive whose CTS is still here: that goes first.
 * Lanes are polled once a round: when a request comes by for the second time. */
static int wf_progress(struct wf_comm* c, struct wf_req* r) {
	uint32_t round = wf_get(c->round), again = wf_get(r->round) == round, recv = wf_get(c->kind) == WF_KIND_RECV;
	if (recv && wf_get(r->seq) >= wf_get(c->cts_out)) return wf_ops(&c->lanes[0])->flush(c, &c->lanes[0]);
	wf_put(c->round, round += again);
	wf_put(r->round, round);
	return again ? wf_lanes(c, !recv && wf_get(r->state) == WF_REQ_POSTED) : 0;
}

int weft_test(void* request, int* done, int* sizes) {
	struct wf_thread* t = wf_self;
	uint64_t h = (uint64_t)(uintptr_t)request;
	if (wf_unlikely(wf_load(wf_forked_child))) return weft_forked();
	if (wf_unlikely(!t) && !(t = wf_thread_join())) return wf_bad("test", WF_FAULT_INTERNAL, "too many calling threads", 0);
	if (wf_unlikely(!done)) return wf_bad("test", WF_FAULT_ARGUMENT, "done is NULL", 0);
	*done = 0;
	uint32_t slot = wf_handle_slot(h);
	struct wf_comm* c = wf_handle_kind(h) == WF_KIND_REQUEST ? wf_comm_at(wf_handle_slab(h)) : NULL;
	if (wf_unlikely(!c || slot >= WF_REQUESTS || wf_load(c->state) != WF_COMM_OPEN)) return wf_bad("test", WF_FAULT_HANDLE, "not a request", h);
	if (wf_unlikely(!wf_enter(t, c))) return 0;
	struct wf_req* r = &c->req[slot];
	if (wf_unlikely(wf_load(c->state) != WF_COMM_OPEN || wf_get(r->gen) != wf_handle_gen(h))) {
		wf_leave(t);
		return wf_bad("test", WF_FAULT_HANDLE, "request is not in flight: it was done before, or its comm was closed", h);
	}
	uint32_t state = wf_get(r->state);
	int rc = 0;
	if (state != WF_REQ_DONE && state != WF_REQ_REFUSED) {
		int code = (int)(uint32_t)wf_load(c->error);
		if (wf_unlikely(code)) {
			wf_leave(t);
			return code;
		}
		rc = wf_progress(c, r);
		state = wf_get(r->state);
	}
	int code = 0;
	if (wf_likely(state == WF_REQ_DONE || state == WF_REQ_REFUSED)) {
		*done = 1;
		if (state == WF_REQ_REFUSED) code = (int)wf_load(c->refuse_code);
		else if (sizes) for (uint32_t i = 0; i < wf_get(r->n); i++) sizes[i] = (int)wf_get(r->e[i].size);
		wf_give(c, slot);
	}
	if (wf_unlikely(rc < 0)) {
		rc = wf_leave_fault(t, c, "test");
		return *done ? code : rc; /* what was done before the fault is still done */
	}
	wf_leave(t);
	if (!*done) wf_flush_list(t, "test");
	return code;
}

void wf_sent(struct wf_comm* c, uint32_t slot) {
	struct wf_req* r = &c->req[slot];
	wf_put(r->state, (uint32_t)WF_REQ_DONE);
	wf_put(c->unsent, wf_get(c->unsent) - 1);
	wf_put(c->messages, wf_get(c->messages) + 1);
	wf_put(c->bytes, wf_get(c->bytes) + wf_get(r->e[0].size));
}

/* Ends a group of receives and frees lines in order. */
static void wf_end_group(struct wf_comm* c, struct wf_req* r, uint32_t state) {
	wf_put(r->state, state);
	wf_put(c->incomplete, wf_get(c->incomplete) - 1);
	wf_put(c->group[wf_get(r->seq) % WF_LINES], WF_GROUP_DONE | wf_get(r->n));
	uint64_t seq = wf_get(c->tail_seq), next = wf_get(c->next_seq);
	uint32_t line = wf_get(c->tail_line), group;
	for (; seq < next && (group = wf_get(c->group[seq % WF_LINES])) & WF_GROUP_DONE; seq++) line += group & ~WF_GROUP_DONE;
	wf_put(c->tail_seq, seq);
	wf_put(c->tail_line, line);
}

void wf_arrived(struct wf_comm* c, uint32_t slot) {
	struct wf_req* r = &c->req[slot];
	for (uint32_t i = 0; i < wf_get(r->n); i++) wf_put(c->bytes, wf_get(c->bytes) + wf_get(r->e[i].size));
	wf_put(c->messages, wf_get(c->messages) + wf_get(r->n));
	wf_end_group(c, r, WF_REQ_DONE);
}

/* The sender refused the group. Only a group whose CTS is out and that nothing arrived for can be refused. */
void wf_comm_refuse(struct wf_comm* c, uint64_t seq, int32_t code) {
	if (wf_get(c->kind) != WF_KIND_RECV || seq < wf_get(c->tail_seq) || seq >= wf_get(c->cts_out)) return;
	uint32_t slot = wf_get(c->group[seq % WF_LINES]);
	if (slot & WF_GROUP_DONE || wf_get(c->req[slot].frames)) return;
	wf_store(c->refuse_code, (uint32_t)code);
	wf_end_group(c, &c->req[slot], WF_REQ_REFUSED);
}
