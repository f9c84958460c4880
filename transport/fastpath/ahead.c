/* ahead.c: messages that leave before their CTS. Sends of a tag and receives of that tag belong together in order,
 * whatever lies between them. So both sides pair them alike without asking: the sender gives the lines of each new
 * group to such messages first, in the order in which they left; the receiver gives them its receives, and keeps in
 * its stash those that have none yet. The sender chooses each message's place in the stash, and uses the place again
 * once it has the CTS of the message's receive. */
#include "ahead.h"
#include "inorder.h"

/* Forgets the first ones that are over. */
void wf_ahead_trim(struct wf_comm* c) {
	uint32_t n = wf_get(c->aheads), first = wf_get(c->ahead_first);
	for (; n && wf_get(c->ahead[first % WF_AHEADS].state) == WF_AHEAD_OVER; n--) first++;
	wf_put(c->aheads, n);
	wf_put(c->ahead_first, first);
}

/* ---- sender ---- */

static uint32_t wf_ahead_bytes(uint32_t size) { return size ? (size + 7) & ~7u : 8; } /* none share a place */

/* Where in the peer's stash so many bytes may lie; WF_NONE: nowhere, or the peer keeps as many messages as it can. */
uint32_t wf_ahead_place(struct wf_comm* c, uint32_t size) {
	uint32_t n = wf_get(c->aheads), room = wf_get(c->ahead_room), at = n ? wf_get(c->ahead_at) : 0;
	uint32_t need = wf_ahead_bytes(size);
	uint32_t oldest = n ? wf_get(c->ahead[wf_get(c->ahead_first) % WF_AHEADS].place) : room;
	if (n == WF_AHEADS) return WF_NONE;
	if (at < oldest) return need < oldest - at ? at : WF_NONE;
	if (need <= room - at) return at;
	return need < oldest ? 0 : WF_NONE;
}

void wf_ahead_leave(struct wf_comm* c, uint32_t place, uint32_t size, int tag) {
	uint32_t n = wf_get(c->aheads);
	struct wf_ahead_message* a = &c->ahead[(wf_get(c->ahead_first) + n) % WF_AHEADS];
	wf_put(a->state, (uint32_t)WF_AHEAD_WAITS);
	wf_put(a->size, size);
	wf_put(a->tag, (int32_t)tag);
	wf_put(a->place, place);
	wf_put(c->aheads, n + 1);
	wf_put(c->ahead_at, place + wf_ahead_bytes(size));
}

/* ---- receiver ---- */

/* Finds the first receive with that tag, from group seq on, that has no message. Receives of a refused group count:
 * the message that meets one is dropped. */
int wf_ahead_find(struct wf_comm* c, uint64_t seq, int32_t tag, uint32_t* slot, uint32_t* entry) {
	uint64_t next = wf_get(c->next_seq), first = wf_get(c->tail_seq);
	if (wf_get(c->refused)) first = next > WF_LINES ? next - WF_LINES : 1;
	for (seq = seq > first ? seq : first; seq < next; seq++) {
		struct wf_refusal* refused = &c->refusals[seq % WF_LINES];
		*slot = wf_get(c->group[seq % WF_LINES]);
		if (*slot & WF_GROUP_DONE) {
			if (wf_get(refused->seq) != seq) continue;
			for (uint32_t i = 0, open = wf_get(refused->open); i < WF_GROUP; i++) {
				if (!(open >> i & 1) || wf_get(refused->tag[i]) != tag) continue;
				wf_put(refused->open, open & ~(1u << i));
				return -1;
			}
			continue;
		}
		struct wf_req* r = &c->req[*slot];
		for (*entry = 0; *entry < wf_get(r->n); ++*entry)
			if (wf_get(r->e[*entry].tag) == tag && wf_get(r->e[*entry].size) == WF_NONE) return 1;
	}
	return 0;
}

/* Ends a group of receives, whose messages that are still to come are nobody's. */
void wf_refuse_receives(struct wf_comm* c, struct wf_req* r) {
	uint64_t seq = wf_get(r->seq);
	struct wf_refusal* refused = &c->refusals[seq % WF_LINES];
	uint32_t open = 0;
	for (uint32_t i = 0; i < wf_get(r->n); i++) {
		wf_put(refused->tag[i], wf_get(r->e[i].tag));
		open |= (uint32_t)(wf_get(r->e[i].size) == WF_NONE) << i;
	}
	wf_put(refused->open, open);
	wf_put(refused->seq, seq);
	wf_put(c->refused, 1u);
	wf_end_group(c, r, WF_REQ_REFUSED);
}

void wf_ahead_refuse(struct wf_comm* c, uint32_t slot, uint32_t entry, uint32_t size) {
	struct wf_req* r = &c->req[slot];
	wf_put(r->e[entry].size, size); /* it has met its message */
	wf_raise(WF_FAULT_AHEAD, "message is larger than its receive", 0, wf_get(r->seq), wf_get(r->e[entry].cap), size);
	wf_self->fault.entry = entry;
	wf_refuse_receives(c, r);
}

uint64_t wf_ahead_keep(struct wf_comm* c, const struct wf_ahead_message* m) {
	uint32_t n = wf_get(c->aheads);
	struct wf_ahead_message* a = &c->ahead[(wf_get(c->ahead_first) + n) % WF_AHEADS];
	if (n == WF_AHEADS) return 0;
	wf_put(a->seq, m->seq);
	wf_put(a->tag, m->tag);
	wf_put(a->size, m->size);
	wf_put(a->place, m->place);
	wf_put(a->state, (uint32_t)WF_AHEAD_FILLING);
	wf_put(c->aheads, n + 1);
	return (uint64_t)(uintptr_t)c->stash + m->place;
}

/* The first have bytes of a message go to its receive, which is booked as if all had. */
static void wf_ahead_book(struct wf_comm* c, struct wf_ahead_message* a, uint32_t have, uint32_t slot, uint32_t entry) {
	struct wf_req* r = &c->req[slot];
	uint32_t size = wf_get(a->size);
	wf_copy_inorder((void*)(uintptr_t)wf_get(r->e[entry].data), (char*)c->stash + wf_get(a->place), have);
	wf_put(r->e[entry].size, size);
	wf_put(r->e[entry].got, size);
	wf_put(r->left, wf_get(r->left) - 1);
	wf_put(r->parts, wf_get(r->parts) + 1);
}

/* Gives a message to its receive, if that is posted. */
static void wf_ahead_give(struct wf_comm* c, struct wf_ahead_message* a) {
	uint32_t slot, entry, size = wf_get(a->size);
	int found = wf_ahead_find(c, wf_get(a->seq), wf_get(a->tag), &slot, &entry);
	wf_put(a->state, (uint32_t)(found ? WF_AHEAD_OVER : WF_AHEAD_WAITS));
	wf_put(a->seq, wf_get(c->next_seq)); /* none of those before is its receive */
	if (found <= 0) return;
	if (size > wf_get(c->req[slot].e[entry].cap)) {
		wf_ahead_refuse(c, slot, entry, size);
		return;
	}
	wf_ahead_book(c, a, size, slot, entry);
	wf_arrived(c, slot);
}

static struct wf_ahead_message* wf_ahead_last(struct wf_comm* c) {
	return &c->ahead[(wf_get(c->ahead_first) + wf_get(c->aheads) - 1) % WF_AHEADS];
}

/* A message is arriving, left bytes are still to come. If its receive is posted by now, it has that, and what is here
 * moves there. 1: slot and entry say which; -1: nobody wants it; 0: the rest goes to the stash as well. */
int wf_ahead_divert(struct wf_comm* c, uint32_t left, uint32_t* slot, uint32_t* entry) {
	struct wf_ahead_message* a = wf_ahead_last(c);
	int found = wf_ahead_find(c, wf_get(a->seq), wf_get(a->tag), slot, entry);
	uint32_t size = wf_get(a->size);
	if (!found) wf_put(a->seq, wf_get(c->next_seq));
	if (!found || (found > 0 && size > wf_get(c->req[*slot].e[*entry].cap))) return 0; /* refused once it is here */
	if (found > 0) wf_ahead_book(c, a, size - left, *slot, *entry);
	wf_put(a->state, (uint32_t)WF_AHEAD_OVER);
	wf_ahead_trim(c);
	return found;
}

void wf_ahead_kept(struct wf_comm* c) {
	wf_ahead_give(c, wf_ahead_last(c));
	wf_ahead_trim(c);
}

/* A group was posted over streams: it takes what waits for it, and its CTS waits for company. -1: a fault was
 * raised. */
int wf_ahead_posted(struct wf_thread* t, struct wf_comm* c, struct wf_req* r) {
	uint32_t line = wf_get(r->line) % WF_LINES, n = wf_get(r->n), first = wf_get(c->ahead_first),
		waiting = wf_get(c->aheads);
	for (uint32_t i = 0; i < n; i++) {
		struct wf_cts_line* l = &c->out[line + i];
		wf_put(l->size, (uint64_t)wf_get(r->e[i].cap));
		wf_put(l->tag, wf_get(r->e[i].tag));
		wf_put(l->n_i, n << 16 | i);
	}
	for (uint32_t i = 0; i < waiting && wf_get(r->left); i++) {
		struct wf_ahead_message* a = &c->ahead[(first + i) % WF_AHEADS];
		if (wf_get(a->state) == WF_AHEAD_WAITS) wf_ahead_give(c, a);
	}
	if (waiting) wf_ahead_trim(c);
	uint64_t queued = wf_get(c->next_seq) - wf_get(c->cts_out);
	if (queued >= (wf_get(c->lazy) ? WF_CTS_LAZY : WF_CTS_BATCH) || wf_get(c->unsaid) >= WF_STASH / 4)
		if (wf_ops(&c->lanes[0])->flush(c, &c->lanes[0]) < 0) return -1;
	return wf_get(t->fault.kind) ? -1 : 0;
}
