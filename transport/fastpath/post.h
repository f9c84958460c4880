/* post.h: what verbs.c, write.c and flush.c share: how work requests are numbered and posted, and what is said of
 * those that fail. */
#ifndef WEFT_POST_H
#define WEFT_POST_H

#include "exec.h"
#include "lane.h"

#include "verbs/verbs.h"

#include <string.h>

_Static_assert(sizeof(struct wf_verbs) <= WF_STREAMS * WF_STREAM_BYTES, "fits the area");
_Static_assert(offsetof(struct wf_verbs, devices) == 64 && offsetof(struct wf_verbs, qp) == 384 &&
	sizeof(struct wf_qp) == 128, "what is used together is on one line");
_Static_assert(WF_BATCH >= WF_GROUP, "a batch");

WF_HIDDEN void wf_take_lanes(struct wf_comm* c, struct wf_verbs* v);
WF_HIDDEN void wf_verbs_hears(struct wf_comm* c, int on);
WF_HIDDEN int wf_verbs_send(struct wf_comm* c, struct wf_lane* l);
WF_HIDDEN int wf_verbs_reads(struct wf_comm* c, struct wf_verbs* v);
WF_HIDDEN int wf_verbs_land(struct wf_comm* c, void* data, uint64_t size, void* mhandle, void** request);

static inline struct wf_verbs* wf_verbs_of(struct wf_comm* c) { return (struct wf_verbs*)(void*)c->area; }
static inline struct ibv_qp* wf_ibv(uint64_t qp) { return (struct ibv_qp*)(uintptr_t)qp; }

static WF_COLD int wf_lane_fault(uint32_t kind, uint32_t lane, const char* where, int err, uint64_t seq, uint64_t want,
	uint64_t got) {
	wf_raise(kind, where, err, seq, want, got);
	wf_self->fault.lane = lane;
	return -1;
}

static WF_COLD int wf_post_failed(uint32_t lane, const char* where, int err) {
	return wf_lane_fault(WF_FAULT_POST, lane, where, err, 0, 0, 0);
}

/* Adds more to the shares that the event of lane, of the group whose first send is first, waits for. Returns the new
 * count. */
static inline uint32_t wf_lane_event(struct wf_comm* c, uint32_t first, uint32_t lane, uint32_t more) {
	uint32_t *word = &c->req_events[first].shares_left[lane % WF_GROUP], left = wf_get(*word) + more;
	wf_put(*word, left);
	return left;
}

static inline uint32_t wf_room(struct wf_lane* l, struct wf_qp* q) {
	return wf_get(q->depth) - (wf_get(l->posted) - wf_get(l->completed));
}

/* Numbers one work request; a signaled one gives back what was posted before it. */
static inline void wf_number(struct wf_verbs* v, struct wf_lane* l, struct wf_qp* q, struct ibv_send_wr* wr,
	uint32_t kind, uint32_t slot, int signaled) {
	uint32_t number = wf_get(l->posted), *open = &v->device[wf_get(q->device)].open;
	wr->wr_id = (uint64_t)kind << 60 | wf_get(q->id) | (uint64_t)slot << 30 | (number & 0x3fffffff);
	wf_put(l->posted, number + 1);
	wf_put(q->silent, signaled ? 0u : wf_get(q->silent) + 1);
	if (!signaled) return;
	wr->send_flags |= IBV_SEND_SIGNALED;
	wf_put(*open, wf_get(*open) + 1);
}

static inline int wf_post(struct wf_lane* l, struct wf_qp* q, struct ibv_send_wr* wr, uint32_t n) {
	struct ibv_qp* qp = wf_ibv(wf_get(q->qp));
	struct ibv_send_wr *bad, *last = wr + n - 1;
	for (struct ibv_send_wr* w = wr; w < last; w++) w->next = w + 1;
	last->next = NULL;
	int rc = qp->context->ops.post_send(qp, wr, &bad);
	return wf_unlikely(rc) ? wf_post_failed(wf_get(l->index), "ibv_post_send", rc) : 0;
}

/* Fills a CTS line, which may be of the stack: the keys of devices that the comm has not are 0. An empty buffer has no
 * memory, and no keys. */
static inline void wf_cts(struct wf_cts_line* out, struct wf_entry* e, uint32_t devices, uint32_t n_i, uint64_t seq) {
	static struct wf_mr nothing;
	uint32_t cap = wf_get(e->cap), d = 0;
	struct wf_keys* key = (wf_likely(cap) ? wf_mr_of(wf_get(e->mr)) : &nothing)->key;
	wf_put(out->addr, wf_get(e->data));
	wf_put(out->size, (uint64_t)cap);
	memset(out->rkey, 0, sizeof out->rkey);
	do wf_put(out->rkey[d], wf_get(key[d].rkey));
	while (wf_unlikely(++d < devices));
	wf_put(out->tag, wf_get(e->tag));
	wf_put(out->n_i, n_i);
	wf_put(out->seq, seq);
}

/* A write to a line of the peer's ring. from is in the slab's registered range, or anywhere where the request carries
 * the bytes. */
static inline void wf_line_wr(struct wf_comm* c, struct wf_qp* q, struct ibv_send_wr* wr, struct ibv_sge* sge,
	const void* from, uint32_t line, uint32_t bytes) {
	struct wf_verbs* v = wf_verbs_of(c);
	int carried = bytes <= wf_get(q->inline_size);
	*sge = (struct ibv_sge){.addr = (uint64_t)(uintptr_t)from, .length = bytes,
		.lkey = carried ? 0 : wf_get(v->device[wf_get(q->device)].lkey)};
	wr->sg_list = sge;
	wr->num_sge = 1;
	wr->send_flags = carried ? IBV_SEND_INLINE : 0;
	wr->wr.rdma.remote_addr = wf_get(v->peer) + line * sizeof *c->ring;
	wr->wr.rdma.rkey = wf_get(v->peer_key[wf_get(q->peer_device)]);
}

#endif
