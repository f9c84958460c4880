/* frames.c: headers that arrive. Every field is the peer's word, so every field is checked; what it says is booked
 * before the payload comes. */
#include "frame.h"

#define WF_LAZY 32u               /* calls that find nothing to do, for which CTS wait for company */
#define WF_NOBODY (WF_NONE - 1)   /* payload of a message that is nobody's */

static int wf_wrong(struct wf_lane* l, const struct wf_frame* f, const char* where, uint64_t want, uint64_t got) {
	wf_raise(WF_FAULT_PROTOCOL, where, 0, f->seq, want, got);
	wf_self->fault.lane = wf_get(l->index);
	wf_self->fault.entry = f->entry;
	return -1;
}

/* What is the same in every frame of the lane, and of its kind. 0, or -1 after a fault. */
static int wf_stray(struct wf_lane* l, const struct wf_frame* f) {
	uint64_t flags = f->kind == WF_FRAME_CTS ? 0 : f->flags, high = f->kind == WF_FRAME_CTS ? f->offset >> 32 : 0;
	uint64_t want = wf_get(l->index) | (uint64_t)wf_get(l->epoch) << 16;
	uint64_t got = f->lane | (uint64_t)f->hop << 8 | (uint64_t)f->epoch << 16 | flags << 32;
	if (high) return wf_wrong(l, f, "tag of a frame", (uint32_t)f->offset, f->offset);
	return got == want ? 0 : wf_wrong(l, f, "lane, hop, epoch and flags of a frame", want, got);
}

/* A frame's payload is complete. */
void wf_landed(struct wf_comm* c, uint32_t slot) {
	if (slot == WF_NONE) wf_ahead_kept(c);
	else if (slot != WF_NOBODY) wf_arrived(c, slot);
}

/* A message is arriving in the stash: if its receive is posted by now, the rest goes there at once. */
void wf_divert(struct wf_comm* c, struct wf_stream* s) {
	uint32_t slot, entry, left = wf_get(s->rx_left);
	int found = wf_ahead_divert(c, left, &slot, &entry);
	if (found) wf_put(s->rx_slot, found > 0 ? slot : WF_NOBODY);
	if (found <= 0) return;
	struct wf_entry* e = &c->req[slot].e[entry];
	wf_put(s->rx_data, wf_get(e->data) + wf_get(e->size) - left);
	wf_put(s->rx_early, (uint32_t)wf_read_early(e));
}

/* An AHEAD header arrived. 1: it has become the DATA header of its receive; 0: the payload goes to the stash; -1:
 * fault. */
static int wf_ahead_frame(struct wf_comm* c, struct wf_lane* l, struct wf_stream* s, struct wf_frame* f) {
	struct wf_ahead_message m = {.seq = f->seq, .size = f->size,
		.tag = (int32_t)(uint32_t)f->offset, .place = (uint32_t)(f->offset >> 32)};
	uint32_t slot = 0, entry = 0;
	uint64_t out = wf_get(c->cts_out);
	if (s != wf_stream_at(l, 0) || wf_get(l->index) || f->entry != WF_AHEAD)
		return wf_wrong(l, f, "message ahead beside stream 0", WF_AHEAD, f->entry);
	if (f->len != f->size || f->size > WF_AHEAD_MOST)
		return wf_wrong(l, f, "size of a message ahead", WF_AHEAD_MOST, f->size);
	if (m.place > WF_STASH - f->size) return wf_wrong(l, f, "place of a message ahead", WF_STASH - f->size, m.place);
	/* whether it belongs to a refused group */
	int forgotten = wf_get(c->refused) && f->seq + WF_LINES + WF_AHEADS < wf_get(c->next_seq);
	if (!f->seq || f->seq > out || forgotten) return wf_wrong(l, f, "unexpected message ahead", out, f->seq);
	uint32_t unsaid = wf_get(c->unsaid) + f->size;
	wf_put(c->unsaid, unsaid);
	wf_put(c->lazy, unsaid < WF_STASH / 4 ? WF_LAZY : 0u);
	int found = wf_ahead_find(c, f->seq, m.tag, &slot, &entry);
	if (found > 0 && f->size <= wf_get(c->req[slot].e[entry].cap)) {
		f->kind = WF_FRAME_DATA;
		f->entry = (uint8_t)entry;
		f->offset = 0;
		f->seq = wf_get(c->req[slot].seq);
		return 1;
	}
	if (found > 0) wf_ahead_refuse(c, slot, entry, f->size);
	uint64_t data = found ? (uint64_t)(uintptr_t)c->stash + m.place : wf_ahead_keep(c, &m);
	if (!data) return wf_wrong(l, f, "messages ahead", WF_AHEADS, WF_AHEADS + 1);
	wf_put(s->rx_slot, found ? WF_NOBODY : WF_NONE);
	wf_put(s->rx_data, data);
	wf_put(s->rx_left, f->len);
	wf_put(s->rx_early, 0u);
	if (!f->len) wf_landed(c, wf_get(s->rx_slot));
	return 0;
}

/* A DATA header arrived: every field is the peer's word, so every field is checked. Bytes are booked when announced;
 * what was announced in full takes no further frame, so nothing is written after the group is complete, and nothing
 * is left out. */
int wf_data_frame(struct wf_comm* c, struct wf_lane* l, struct wf_stream* s) {
	struct wf_frame f = wf_frame_get(s->rx_frame).frame;
	if (wf_stray(l, &f) < 0) return -1;
	int ahead = f.kind == WF_FRAME_AHEAD, rc = ahead ? wf_ahead_frame(c, l, s, &f) : 1;
	if (rc < 1) return rc;
	if (f.kind != WF_FRAME_DATA) return wf_wrong(l, &f, "frame is not DATA", WF_FRAME_DATA, f.kind);
	if (!ahead) wf_put(c->lazy, 0u);
	if (f.seq < wf_get(c->tail_seq) || f.seq >= (ahead ? wf_get(c->next_seq) : wf_get(c->cts_out)))
		return wf_wrong(l, &f, "no receive has this seq", wf_get(c->tail_seq), f.seq);
	uint32_t slot = wf_get(c->group[f.seq % WF_LINES]);
	if (slot & WF_GROUP_DONE) return wf_wrong(l, &f, "the group is complete", wf_get(c->tail_seq), f.seq);
	struct wf_req* r = &c->req[slot];
	if (f.entry >= wf_get(r->n)) return wf_wrong(l, &f, "entry outside the group", wf_get(r->n), f.entry);
	struct wf_entry* e = &r->e[f.entry];
	uint32_t size = wf_get(e->size), got = wf_get(e->got);
	if (f.size > wf_get(e->cap)) return wf_wrong(l, &f, "message larger than its receive", wf_get(e->cap), f.size);
	if (size == WF_NONE) {
		size = f.size;
		wf_put(e->size, size);
		wf_put(r->begins[f.entry], (uint64_t)1);
		wf_put(r->ends[f.entry], (uint64_t)1);
	} else if (size != f.size || size == got)
		return wf_wrong(l, &f, "size differs from the first frame's", size, f.size);
	if (f.offset > size || f.len > size - f.offset || f.len > size - got)
		return wf_wrong(l, &f, "payload outside its message", size, f.offset + f.len);
	if (!f.len && size) return wf_wrong(l, &f, "empty frame of a message that is not", size, 0);
	wf_put(e->got, got + f.len);
	if (f.len < size) wf_cover(r, f.entry, f.offset, f.offset + f.len);
	if (f.len < size && got + f.len == size && !wf_covered(r, f.entry, size))
		return wf_wrong(l, &f, "payloads that overlap", size, f.offset);
	if (got + f.len == size) wf_put(r->left, wf_get(r->left) - 1);
	wf_put(r->parts, wf_get(r->parts) + 1);
	wf_put(s->rx_slot, slot);
	wf_put(s->rx_data, wf_get(e->data) + f.offset);
	wf_put(s->rx_left, f.len);
	wf_put(s->rx_early, (uint32_t)wf_read_early(e));
	if (!f.len) wf_landed(c, slot);
	return 0;
}

/* Bytes of CTS frames that the ring has lines for; who sent more has seen groups end whose CTS lie unread here. */
uint32_t wf_cts_room(struct wf_comm* c) {
	uint32_t used = wf_get(c->cts_line) + wf_get(c->cts_entry) - wf_get(c->head_line);
	return used + WF_GROUP > WF_LINES ? 0 : (WF_LINES - WF_GROUP + 1 - used) * WF_FRAME;
}

/* A CTS header arrived: one line of the ring. */
int wf_cts_frame(struct wf_comm* c, struct wf_lane* l, struct wf_stream* s) {
	struct wf_frame f = wf_frame_get(s->rx_frame).frame;
	if (wf_stray(l, &f) < 0) return -1;
	if (f.kind != WF_FRAME_CTS || f.len) return wf_wrong(l, &f, "frame is not CTS", WF_FRAME_CTS, f.kind);
	uint64_t seq = wf_get(c->cts_seq);
	uint32_t entry = wf_get(c->cts_entry), at = wf_get(c->cts_line);
	if (f.seq != seq || f.entry != entry) return wf_wrong(l, &f, "CTS out of order", seq, f.seq);
	struct wf_cts_line* line = &c->ring[at % WF_LINES];
	uint32_t n = entry ? wf_get(line->n_i) >> 16 : f.flags;
	if (f.flags != n || n < 1 || n > WF_GROUP) return wf_wrong(l, &f, "receives in the group", n, f.flags);
	if (at + n - wf_get(c->head_line) > WF_LINES)
		return wf_wrong(l, &f, "more CTS than lines", WF_LINES, at + n - wf_get(c->head_line));
	if (f.size > WF_SIZE_MAX) return wf_wrong(l, &f, "size of a receive", WF_SIZE_MAX, f.size);
	wf_put(line[entry].size, (uint64_t)f.size);
	wf_put(line[entry].tag, (int32_t)f.offset);
	wf_put(line[entry].n_i, n << 16 | entry);
	wf_store(line[entry].seq, seq);
	wf_put(c->cts_entry, ++entry);
	if (entry == n) {
		wf_put(c->cts_entry, 0u);
		wf_put(c->cts_seq, seq + 1);
		wf_put(c->cts_line, at + n);
	}
	return 0;
}
