/* send.c: isend, and how sends find their receives.
 *
 * A small send whose receive is not known yet goes ahead of it (ahead.c): it is over when the kernel has
 * it, or a copy does, and is given its line when the CTS of a group with its tag arrives, before any other send is. */
#include "ahead.h"
#include "count.h"

/* Line i of the head group is malformed: over verbs the peer writes it. */
static WF_COLD int wf_bad_line(struct wf_comm* c, struct wf_cts_line* line, uint32_t i) {
	wf_raise(WF_FAULT_PROTOCOL, "CTS line", 0, wf_get(c->head_seq), wf_get(line->size), wf_get(line->n_i));
	wf_self->fault.entry = i;
	return -2;
}

/* The head group's first unmatched line of that tag, -1, or -2 after a fault; *n: receives in the group, 0: no group
 * yet. */
static inline __attribute__((always_inline)) int wf_match(struct wf_comm* c, int tag, uint32_t* n) {
	struct wf_cts_line* line = &c->ring[wf_get(c->head_line) % WF_LINES];
	uint64_t seq = wf_get(c->head_seq), there = wf_load(line[0].seq);
	*n = wf_get(c->head_n);
	if (!*n) {
		if (there != seq) return wf_unlikely(there > seq) ? wf_bad_line(c, line, 0) : -1;
		*n = wf_get(line[0].n_i) >> 16;
		if (wf_unlikely(!*n || *n > WF_GROUP)) return wf_bad_line(c, line, 0);
		wf_put(c->head_n, *n);
	}
	for (uint32_t i = 0; i < *n && wf_load(line[i].seq) == seq; i++) {
		if (wf_unlikely(wf_get(line[i].n_i) != (*n << 16 | i) || wf_get(line[i].size) > WF_SIZE_MAX))
			return wf_bad_line(c, &line[i], i);
		if (!(wf_get(c->head_mask) >> i & 1) && wf_get(line[i].tag) == tag) return (int)i;
	}
	return -1;
}

static WF_COLD void wf_refuse_send(struct wf_comm* c, uint32_t slot) {
	wf_put(c->req[slot].state, (uint32_t)WF_REQ_REFUSED);
	if (wf_get(c->events)) wf_events_stop(c, slot);
}

/* Ends the group's matched sends; those still to come end at once. */
static void wf_refuse_group(struct wf_comm* c) {
	for (uint32_t i = 0; i < WF_GROUP; i++)
		if (wf_get(c->head_mask) >> i & 1 && wf_get(c->match[i]) != WF_NONE)
			wf_refuse_send(c, wf_get(c->match[i]));
	wf_put(c->head_refused, 1u);
}

static void wf_queue(struct wf_comm* c, uint32_t slot) {
	uint32_t tail = wf_get(c->queue_tail);
	if (tail == wf_get(c->queue_head)) wf_put(c->queue_head, tail = 0); /* the start of the queue stays cached */
	wf_put(c->queue[tail % WF_REQUESTS], slot);
	wf_put(c->queue_tail, tail + 1);
	wf_put(c->req[slot].left, 1u);
	wf_put(c->unsent, wf_get(c->unsent) + 1);
}

static inline int wf_next_group(struct wf_comm* c, uint32_t n) {
	wf_put(c->head_seq, wf_get(c->head_seq) + 1);
	wf_put(c->head_line, wf_get(c->head_line) + n);
	wf_put(c->head_n, 0u);
	return wf_lanes(c, 1);
}

/* Every line of the head group is matched: post its sends, unless it was refused, and move the head. */
static inline int wf_post_group(struct wf_comm* c, uint32_t n) {
	for (uint32_t i = 0; i < n && !wf_get(c->head_refused); i++) {
		uint32_t slot = wf_get(c->match[i]);
		if (slot == WF_NONE) continue; /* it has left */
		wf_put(c->req[slot].state, (uint32_t)WF_REQ_POSTED);
		wf_put(c->req[slot].line, wf_get(c->head_line));
		wf_put(c->req[slot].next, i + 1 < n ? wf_get(c->match[i + 1]) : WF_NONE);
		wf_queue(c, slot);
	}
	wf_put(c->head_mask, 0u);
	wf_put(c->head_refused, 0u);
	return wf_next_group(c, n);
}

/* The send takes line i of the n of the head group; the last one posts it. */
static inline int wf_place(struct wf_comm* c, uint32_t slot, uint32_t i, uint32_t n) {
	struct wf_req* r = &c->req[slot];
	uint32_t size = wf_get(r->e[0].size), mask = wf_get(c->head_mask) | 1u << i, head = wf_get(c->head_line);
	uint64_t room = wf_get(c->ring[head % WF_LINES + i].size);
	int rc = 0;
	if (wf_unlikely(size > room) && wf_get(c->cuts)) {
		size = (uint32_t)room;
		wf_put(r->e[0].size, size);
	}
	if (wf_likely(n == 1 && size <= room && !wf_get(c->head_refused))) { /* alone */
		wf_put(r->state, (uint32_t)WF_REQ_POSTED);
		wf_put(r->line, head);
		wf_put(r->next, WF_NONE);
		wf_queue(c, slot);
		return wf_next_group(c, 1);
	}
	wf_put(r->state, (uint32_t)WF_REQ_MATCHED);
	if (wf_unlikely(wf_get(c->head_refused))) wf_refuse_send(c, slot);
	wf_put(c->match[i], slot);
	wf_put(c->head_mask, mask);
	if (wf_unlikely(size > room && !wf_get(c->head_refused))) {
		wf_refuse_group(c);
		rc = wf_raise(WF_FAULT_TOO_LARGE, "send is larger than its receive", 0, wf_get(c->head_seq), room, size);
		wf_self->fault.entry = i;
	}
	return mask == (1u << n) - 1 && wf_post_group(c, n) < 0 ? -1 : rc;
}

/* Gives a line of the head group to the first send of its tag that left ahead of it. 1: there was one, look again;
 * -1: a fault. */
static WF_COLD int wf_line_ahead(struct wf_comm* c) {
	uint32_t n, k = 0, first = wf_get(c->ahead_first);
	struct wf_ahead_message* a;
	int i = -1, rc = 1;
	for (; i == -1; k++) {
		if (k == wf_get(c->aheads)) return 0;
		a = &c->ahead[(first + k) % WF_AHEADS];
		if (wf_get(a->state) == WF_AHEAD_OVER) continue;
		i = wf_match(c, wf_get(a->tag), &n);
		if (i == -1 && !n) return 0; /* nothing is known of the head group */
	}
	if (i == -2) return -1;
	uint64_t room = wf_get(c->ring[wf_get(c->head_line) % WF_LINES + (uint32_t)i].size), seq = wf_get(c->head_seq);
	uint32_t size = wf_get(a->size), mask = wf_get(c->head_mask) | 1u << i;
	wf_put(a->state, (uint32_t)WF_AHEAD_OVER);
	wf_ahead_trim(c);
	wf_put(c->match[i], WF_NONE);
	wf_put(c->head_mask, mask);
	if (size > room && !wf_get(c->head_refused)) {
		wf_refuse_group(c);
		rc = wf_raise(WF_FAULT_AHEAD, "message is larger than its receive", 0, seq, room, size);
		wf_self->fault.entry = (uint32_t)i;
	}
	return mask == (1u << n) - 1 && wf_post_group(c, n) < 0 ? -1 : rc;
}

static int wf_line_aheads(struct wf_comm* c) {
	int rc = 0;
	while (wf_get(c->aheads) && (rc = wf_line_ahead(c)) > 0) {}
	return rc < 0 ? -1 : 0;
}

/* Takes CTS in. */
int wf_poll_cts(struct wf_comm* c) { return wf_lanes(c, 0) < 0 || wf_line_aheads(c) < 0 ? -1 : 0; }

/* The address of an argument would keep it in memory for every message. */
static WF_COLD void wf_send_heard(struct wf_comm* c, uint32_t slot, void* phandle) {
	wf_events_start(c, slot, &phandle);
}

static WF_COLD int wf_send_ended(int code, void* comm, size_t size, void** request) {
	return wf_ended(code, "isend", WF_KIND_SEND, comm, 1, &size, request);
}

int weft_isend(void* sendComm, void* data, size_t size, int tag, void* mhandle, void* phandle, void** request) {
	int rc;
	struct wf_comm* c = wf_begin("isend", WF_KIND_SEND, sendComm, request, &rc);
	if (wf_unlikely(!c)) return rc ? wf_send_ended(rc, sendComm, size, request) : 0;
	struct wf_thread* t = wf_self;
	uint32_t n = 1, slot, ahead = WF_NONE;
	int i = wf_unlikely(wf_get(c->aheads)) && wf_line_aheads(c) < 0 ? -2 : wf_match(c, tag, &n);
	if (i == -1 && !n && size < wf_get(c->lanes[0].ahead)) ahead = wf_ahead_place(c, (uint32_t)size);
	if (i == -1 && ahead == WF_NONE && (!wf_direct(c) || wf_get(c->queue_head) != wf_get(c->queue_tail))) {
		if (wf_get(c->unsent)) wf_put(c->push, (uint32_t)WF_PUSH);
		i = wf_lanes(c, 1) < 0 || wf_poll_cts(c) < 0 ? -2 : wf_match(c, tag, &n);
	}
	if (wf_unlikely(i == -2)) return wf_send_ended(wf_leave_fault(t, c, "isend"), sendComm, size, request);
	struct wf_req* r = i < 0 && ahead == WF_NONE ? NULL : wf_take(c, &slot, WF_REQUESTS);
	if (!r) {
		wf_put(c->vain, wf_get(c->vain) + 1);
		if (wf_unlikely(wf_get(c->events))) wf_count_wait(c);
		goto leave;
	}
	if (wf_unlikely(wf_buffer(c, &r->e[0], data, &(uint64_t){size}, tag, mhandle, 0) < 0)) {
		wf_give(c, slot);
		return wf_leave_fault(t, c, "isend");
	}
	wf_put(r->e[0].size, (uint32_t)size);
	wf_put(r->n, 1u);
	wf_put(r->left, 0u);
	wf_put(r->seq, wf_get(c->head_seq));
	wf_put(r->cursor, 0u);
	wf_put(r->entry, ahead != WF_NONE ? WF_AHEAD : (uint32_t)i);
	*request = wf_request(c, r, slot);
	if (wf_unlikely(wf_get(c->events))) wf_send_heard(c, slot, phandle);
	if (ahead != WF_NONE) {
		wf_put(r->state, (uint32_t)WF_REQ_POSTED);
		wf_put(r->place, ahead);
		wf_ahead_leave(c, ahead, (uint32_t)size, tag);
		wf_queue(c, slot);
	}
	if (wf_unlikely((ahead != WF_NONE ? wf_lanes(c, 1) : wf_place(c, slot, (uint32_t)i, n)) < 0)) {
		wf_leave_fault(t, c, "isend"); /* test tells */
		return 0;
	}
leave:
	wf_leave(t);
	if (wf_unlikely(wf_load(t->list_head))) wf_flush_list(t, "isend");
	return 0;
}

void wf_sent(struct wf_comm* c, uint32_t slot) {
	struct wf_req* r = &c->req[slot];
	if (wf_get(r->state) == WF_REQ_POSTED) wf_put(r->state, (uint32_t)WF_REQ_DONE);
	wf_put(r->left, 0u);
	wf_put(c->unsent, wf_get(c->unsent) - 1);
	wf_put(c->messages, wf_get(c->messages) + 1);
	wf_put(c->bytes, wf_get(c->bytes) + wf_get(r->e[0].size));
}
