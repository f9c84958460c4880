/* ahead.c: the receiver's side of a message that left before its CTS. It belongs to the first group, from the sender's head on,
 * that has a receive of its tag, and there to the first of them; the sender comes to the same when it has the CTS. It waits in
 * the stash until that group's CTS is out. */
#include "exec.h"
#include "inorder.h"

/* The groups that count are those with a slot: what lies further back is complete. */
int wf_ahead_find(struct wf_comm* c, uint64_t seq, int32_t tag, uint32_t* slot, uint32_t* entry) {
	uint64_t next = wf_get(c->next_seq);
	if (seq + WF_LINES < next) seq = next - WF_LINES;
	for (; seq < wf_get(c->cts_out); seq++) {
		struct wf_cts_line* refused = &c->ring[seq % WF_LINES];
		*slot = wf_get(c->group[seq % WF_LINES]);
		if (*slot & WF_GROUP_DONE && wf_get(refused->seq) != seq) continue;
		uint32_t n = *slot & WF_GROUP_DONE ? wf_get(refused->n_i) >> 16 : wf_get(c->req[*slot].n);
		for (*entry = 0; *entry < n; ++*entry) {
			if (*slot & WF_GROUP_DONE) {
				if ((int32_t)wf_get(refused->rkey[*entry]) == tag) return WF_STASH_DROP;
			} else if (wf_get(c->req[*slot].e[*entry].tag) == tag && wf_get(c->req[*slot].e[*entry].size) == WF_NONE) {
				return WF_STASH_FULL;
			}
		}
	}
	return WF_STASH_EMPTY;
}

/* Gives the stashed message to its receive, if that is known by now. One that is too large is dropped: the sender refuses it. */
void wf_ahead_place(struct wf_comm* c) {
	uint32_t slot, entry, size = wf_get(c->stash_size);
	if (wf_get(c->stash) != WF_STASH_FULL) return;
	int found = wf_ahead_find(c, wf_get(c->stash_seq), wf_get(c->stash_tag), &slot, &entry);
	if (found == WF_STASH_EMPTY) { /* nor will it be one of these: its sender may go on with other tags for as long as it likes */
		wf_put(c->stash_seq, wf_get(c->cts_out));
		return;
	}
	wf_put(c->stash, (uint32_t)WF_STASH_EMPTY);
	if (found == WF_STASH_DROP || size > wf_get(c->req[slot].e[entry].cap)) return;
	struct wf_req* r = &c->req[slot];
	wf_copy_inorder((void*)(uintptr_t)wf_get(r->e[entry].data), c->tx, size);
	wf_put(r->e[entry].size, size);
	wf_put(r->e[entry].got, size);
	wf_put(r->left, wf_get(r->left) - 1);
	wf_put(r->frames, wf_get(r->frames) + 1);
	wf_arrived(c, slot);
}
