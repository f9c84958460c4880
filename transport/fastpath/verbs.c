/* verbs.c: lanes that are queue pairs. The receiver writes a group's CTS lines into the peer's ring, on lane 0; the
 * sender writes data (write.c); a completion with an immediate says which share of which group came.
 *
 * Lane 0's ops drive all lanes. Every word of the ring and every immediate is the peer's: it is checked before it is
 * used. */
#include "event.h"
#include "message.h"
#include "post.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define WF_POLLS 4 /* batches of a queue that one call takes */
#define WF_DUE 4   /* receives of a lane that are posted again together: more would make one message wait */

static WF_COLD int wf_verbs_wrong(uint32_t lane, uint64_t seq, const char* where, uint64_t want, uint64_t got) {
	return wf_lane_fault(WF_FAULT_PROTOCOL, lane, where, 0, seq, want, got);
}

/* An immediate came: one share of a group. Shares that came before are ignored. */
static inline int wf_share_came(struct wf_comm* c, uint32_t lane, uint32_t imm, uint32_t bytes) {
	uint64_t tail = wf_get(c->tail_seq), seq = tail + ((imm >> 20) - tail) % 4096;
	uint32_t shares = (imm >> 15 & 31) + 1, share = imm >> 10 & 31, kind = imm >> 8 & 3;
	if (wf_get(c->kind) != WF_KIND_RECV) return wf_verbs_wrong(lane, seq, "immediate on a send comm", 0, imm);
	if (seq >= wf_get(c->cts_out)) return wf_verbs_wrong(lane, seq, "no receive has this seq", tail, imm >> 20);
	uint32_t slot = wf_get(c->group[seq % WF_LINES]);
	if (slot & WF_GROUP_DONE) return 0;
	struct wf_req* r = &c->req[slot];
	uint32_t n = wf_get(r->n), came = wf_get(r->came);
	if (wf_likely(n == 1 && !came && !(imm & 0xfff00) && bytes <= wf_get(r->e[0].cap))) { /* all of the only message */
		wf_put(r->e[0].size, bytes);
		wf_put(r->parts, 0u);
		wf_put(c->bytes, wf_get(c->bytes) + bytes);
		wf_put(c->messages, wf_get(c->messages) + 1);
		wf_end_group(c, r, WF_REQ_DONE);
		return 0;
	}
	if (!came) wf_put(r->shares, shares);
	if (share >= shares || shares != wf_get(r->shares))
		return wf_verbs_wrong(lane, seq, "share of a message", wf_get(r->shares), shares << 8 | share);
	if (came >> share & 1) return 0;
	if (kind == WF_IMM_RECORD && !share) {
		struct wf_record* record = wf_record_on(&c->ring[wf_get(r->line) % WF_LINES]);
		if (wf_get(record->seq) != seq || wf_get(record->n) != n)
			return wf_verbs_wrong(lane, seq, "record of another group", n, wf_get(record->n));
		for (uint32_t i = 0; i < n; i++) {
			uint32_t size = wf_get(record->size[i]);
			if (size > wf_get(r->e[i].cap))
				return wf_verbs_wrong(lane, seq, "message larger than its receive", wf_get(r->e[i].cap), size);
			wf_put(r->e[i].size, size);
		}
	} else if (kind != WF_IMM_DATA || (!share && (shares > 1 || n > 1))) {
		return wf_verbs_wrong(lane, seq, "immediate of a share", n, imm);
	} else if (!share) {
		if (bytes > wf_get(r->e[0].cap))
			return wf_verbs_wrong(lane, seq, "message larger than its receive", wf_get(r->e[0].cap), bytes);
		wf_put(r->e[0].size, bytes);
	}
	came |= 1u << share;
	wf_put(r->came, came);
	if (came != (uint32_t)((1ull << shares) - 1)) return 0;
	wf_put(r->left, 0u);
	wf_put(r->parts, 1u);
	wf_arrived(c, slot);
	return 0;
}

/* The requests up to the lane's mark are complete: takes the sample, and marks those that were posted since. */
static void wf_sample(struct wf_gauge* g, struct wf_lane* l, struct wf_qp* q, uint32_t number) {
	if ((number - wf_get(q->mark)) & 0x20000000) return; /* numbers have 30 bits */
	uint64_t now = wf_clock();
	wf_put(g->bytes, wf_get(g->bytes) + wf_get(q->goal) - wf_get(q->base));
	wf_put(g->busy, wf_get(g->busy) + now - wf_get(q->since));
	wf_put(q->sent, wf_get(q->sent) + wf_get(q->each) * (wf_get(l->posted) - 1 - wf_get(q->mark)));
	wf_put(q->each, (uint64_t)0);
	wf_put(q->since, now);
	wf_put(q->base, wf_get(q->goal));
	wf_put(q->mark, wf_get(l->posted) - 1);
	wf_put(q->goal, wf_get(q->sent));
}

/* A share of a group is complete. An event of its messages stops with the event's last share, and the recorder sees
 * the messages end with the group's last one. */
static WF_COLD void wf_write_ends(struct wf_comm* c, uint32_t slot, uint32_t lane) {
	uint32_t left = wf_lane_event(c, slot, lane, (uint32_t)-1), last = wf_get(c->req[slot].parts) == 1;
	for (; slot != WF_NONE; slot = wf_get(c->req[slot].next)) {
		if (!left) wf_event_stop(c, slot, lane % WF_GROUP, 0, NULL);
		if (last) wf_message_end(c, slot);
	}
}

/* A signaled request of ours is complete, and all before it on its lane. */
static void wf_completed(struct wf_comm* c, struct wf_verbs* v, uint64_t id) {
	uint32_t kind = (uint32_t)(id >> 60), slot = (uint32_t)(id >> 30) % WF_SLOTS,
		lane = (uint32_t)(id >> 54 & 63) % WF_LANES;
	struct wf_lane* l = &c->lanes[lane];
	struct wf_req* r = &c->req[slot];
	uint32_t d = kind == WF_WR_READ ? lane % WF_DEVICES : wf_get(v->qp[lane].device);
	uint32_t completed = wf_get(l->completed);
	struct wf_device* on = &v->device[d];
	wf_put(on->open, wf_get(on->open) - 1);
	if (kind == WF_WR_READ) wf_put(on->reads, wf_get(on->reads) - 1);
	else wf_put(l->completed, completed + (((uint32_t)id + 1 - completed) & 0x3fffffff));
	if (wf_unlikely(wf_get(v->qp[lane].sent) != wf_get(v->qp[lane].base)))
		wf_sample(&c->gauge[lane], l, &v->qp[lane], (uint32_t)id);
	if (kind != WF_WR_DATA && kind != WF_WR_READ) {
		if (kind != WF_WR_HEARD) return;
		wf_write_ends(c, slot, lane);
		kind = WF_WR_DATA;
	}
	uint32_t left = wf_get(r->parts) - 1;
	wf_put(r->parts, left);
	if (left) return;
	if (kind == WF_WR_READ) wf_put(r->state, (uint32_t)WF_REQ_DONE);
	for (uint32_t next; kind == WF_WR_DATA && slot != WF_NONE; slot = next) {
		next = wf_get(c->req[slot].next);
		wf_sent(c, slot);
	}
}

/* Posts the lane's receives again. They have no buffers: an immediate is all they take. */
static int wf_refill(struct wf_qp* q) {
	struct ibv_recv_wr wr[WF_BATCH], *bad;
	struct ibv_qp* qp = wf_ibv(wf_get(q->qp));
	for (uint32_t due; (due = wf_get(q->due)); ) {
		uint32_t n = due < WF_BATCH ? due : WF_BATCH;
		for (uint32_t i = 0; i < n; i++)
			wr[i] = (struct ibv_recv_wr){
				.wr_id = (uint64_t)WF_WR_RECV << 60 | wf_get(q->id),
				.next = i + 1 < n ? &wr[i + 1] : NULL,
			};
		int rc = qp->context->ops.post_recv(qp, wr, &bad);
		if (rc) return rc;
		wf_put(q->due, due - n);
	}
	return 0;
}

static int wf_refill_some(struct wf_verbs* v, uint32_t lanes) {
	int rc = 0;
	for (; lanes && !rc; lanes &= lanes - 1)
		if ((rc = wf_refill(&v->qp[__builtin_ctz(lanes)])))
			rc = wf_post_failed((uint32_t)__builtin_ctz(lanes), "ibv_post_recv", rc);
	return rc;
}

/* Takes in what a device's CQ has. What completes beside an error still counts; flushed requests are never the
 * cause. */
static inline __attribute__((always_inline)) int wf_poll(struct wf_comm* c, struct wf_verbs* v, uint32_t d,
	uint32_t polls) {
	struct ibv_cq* cq = (struct ibv_cq*)(uintptr_t)wf_get(v->device[d].cq);
	struct ibv_wc wc[WF_BATCH], bad;
	uint32_t failed = 0, refill = 0;
	int got, rc = 0;
	do {
		got = cq->context->ops.poll_cq(cq, WF_BATCH, wc);
		/* only the sign means something */
		if (wf_unlikely(got < 0)) return wf_post_failed(WF_LANES + d, "ibv_poll_cq", EIO);
		for (struct ibv_wc *w = wc, *end = wc + got; w < end; w++) {
			uint32_t lane = (uint32_t)(w->wr_id >> 54) % WF_LANES;
			if (wf_unlikely(w->status != IBV_WC_SUCCESS)) {
				/* see wf_verbs_drain */
				uint32_t rank = 1 + (w->status != IBV_WC_WR_FLUSH_ERR) + 2 * (w->wr_id >> 60 == WF_WR_READ);
				if (rank > failed) {
					bad = *w;
					failed = rank;
				}
				polls += polls < WF_POLLS; /* the cause may be behind */
			} else if (w->wr_id >> 60 != WF_WR_RECV) {
				wf_completed(c, v, w->wr_id);
			} else {
				uint32_t due = wf_get(v->qp[lane].due) + 1;
				wf_put(v->qp[lane].due, due);
				refill |= (uint32_t)(due >= WF_DUE) << lane; /* one post for some: wf_verbs_flush knows what is left */
				if (wf_unlikely(!(w->wc_flags & IBV_WC_WITH_IMM)))
					rc = wf_verbs_wrong(lane, 0, "message without immediate", 0, w->byte_len);
				else if (rc >= 0) rc = wf_share_came(c, lane, ntohl(w->imm_data), w->byte_len);
			}
		}
	} while (wf_unlikely(got == WF_BATCH) && --polls);
	if (refill && wf_refill_some(v, refill) < 0) rc = -1;
	if (wf_likely(!failed)) return rc;
	return wf_lane_fault(WF_FAULT_COMPLETION, (uint32_t)(bad.wr_id >> 54 & 63), "completion", (int)bad.status, 0,
		bad.wr_id, bad.vendor_err);
}

static WF_COLD int wf_poll_now(struct wf_comm* c, struct wf_verbs* v, uint32_t d, uint32_t polls) {
	return wf_poll(c, v, d, polls);
}

static int wf_verbs_progress(struct wf_comm* c, struct wf_lane* l) {
	struct wf_verbs* v = wf_verbs_of(c);
	uint32_t send = wf_get(c->kind) == WF_KIND_SEND;
	uint32_t d = 0, devices = wf_get(v->devices);
	do {
		struct wf_device* on = &v->device[d];
		if (wf_likely(wf_get(on->cq)) && (!send || wf_get(on->open)) && wf_poll(c, v, d, WF_POLLS) < 0) return -1;
	} while (wf_unlikely(++d < devices));
	return wf_unlikely(wf_get(c->queue_head) != wf_get(c->queue_tail)) ? wf_verbs_send(c, l) : 0;
}

/* The lines of a group behind its first. */
static WF_COLD void wf_cts_further(struct wf_cts_line* out, struct wf_req* r, uint32_t devices, uint64_t seq) {
	uint32_t group = wf_get(r->n);
	for (uint32_t i = 1; i < group; i++) wf_cts(&out[i], &r->e[i], devices, group << 16 | i, seq);
}

/* Writes the CTS lines of [cts_out, next_seq), one request per group. 0: all are posted, 1: some are left. */
static int wf_verbs_flush(struct wf_comm* c, struct wf_lane* l) {
	struct wf_verbs* v = wf_verbs_of(c);
	struct wf_qp* q = &v->qp[0];
	uint32_t devices = wf_get(v->devices);
	uint64_t seq = wf_get(c->cts_out), next = wf_get(c->next_seq);
	if (wf_unlikely(wf_get(c->kind) != WF_KIND_RECV || seq == next)) return 0;
	if (wf_unlikely(next - wf_get(c->tail_seq) > wf_get(v->spare)) &&
			wf_refill_some(v, ~0u >> (32 - wf_get(c->nlanes))) < 0)
		return -1;
	if (wf_unlikely(!wf_room(l, q)) && wf_poll_now(c, v, wf_get(q->device), 1) < 0) return -1;
	for (; seq < next && wf_room(l, q); seq++) {
		uint32_t slot = wf_get(c->group[seq % WF_LINES]);
		struct wf_req* r = &c->req[slot];
		uint32_t line = wf_get(r->line) % WF_LINES, group = wf_get(r->n), bytes = group * (uint32_t)sizeof *c->out;
		struct ibv_send_wr wr;
		struct ibv_sge sge;
		/* a request that carries its lines has taken them once it is posted: no line of out need be cached for it */
		struct wf_cts_line carried[WF_GROUP], *out = carried;
		if (wf_unlikely(bytes > wf_get(q->inline_size))) out = &c->out[line];
		wf_cts(out, &r->e[0], devices, group << 16, seq);
		if (wf_unlikely(group > 1)) wf_cts_further(out, r, devices, seq);
		wr.opcode = IBV_WR_RDMA_WRITE;
		wf_line_wr(c, q, &wr, &sge, out, line, bytes);
		wf_number(v, l, q, &wr, WF_WR_CTS, slot, wf_get(q->silent) + 1 >= wf_get(q->depth) / 4);
		wf_put(c->cts_out, seq + 1);
		if (wf_post(l, q, &wr, 1) < 0) return -1;
	}
	return seq < next;
}

/* Describes a receive, by the first QP: nobody knows in advance which ones bring it. Sends' lanes say it themselves. */
static int64_t wf_verbs_describe(struct wf_comm* c, struct wf_req* r, uint32_t entry, union wf_event* event) {
	struct wf_qp* q = &wf_verbs_of(c)->qp[0];
	uint32_t size = wf_get(r->e[entry].size);
	if (wf_get(c->kind) == WF_KIND_SEND) return 0;
	event->ib = (ncclProfilerNetIbDescr_v1_t){.type = ncclProfileQp, .qp = {.device = (int)wf_get(q->device),
		.wr_id = (uint64_t)WF_WR_RECV << 60 | wf_get(q->id), .opcode = IBV_WC_RECV_RDMA_WITH_IMM,
		.qpNum = (int)wf_ibv(wf_get(q->qp))->qp_num, .length = size == WF_NONE ? wf_get(r->e[entry].cap) : size}};
	return NCCL_PROFILER_NET_TYPE_IB | NCCL_PROFILER_NET_IB_VER;
}

static const struct wf_lane_ops wf_verbs_ops = {
	.send = wf_verbs_send, .progress = wf_verbs_progress, .flush = wf_verbs_flush, .land = wf_verbs_land,
	.describe = wf_verbs_describe, .hears = wf_verbs_hears,
};

/* Attaches the first lanes, or further ones. A sender's further lanes wait for their first group, and until then no
 * message is posted as a single request; when they cannot be had, nothing that is in use has changed. */
int wf_verbs_attach(struct wf_comm* c, const struct wf_verbs* plan) {
	struct wf_verbs* v = wf_verbs_of(c);
	uint32_t first = wf_get(c->nlanes), lanes = plan->next.lanes;
	uint32_t single = plan->next.width > 1 ? plan->stripe_min : WF_SIZE_MAX;
	if (first && wf_get(c->state) != WF_COMM_OPEN) return ECANCELED;
	if (!first) *v = *plan;
	if (plan->ar_threshold && plan->ar_threshold < single) single = plan->ar_threshold;
	for (uint32_t i = 0; i < lanes; i++) {
		struct wf_qp* q = &v->qp[i];
		if (plan->qp[i].most < single) single = plan->qp[i].most;
		if (i < first) continue;
		*q = plan->qp[i];
		q->id = (uint64_t)i << 54;
		memset(&c->lanes[i], 0, sizeof c->lanes[i]);
		memset(&c->gauge[i], 0, sizeof c->gauge[i]);
		wf_put(c->lanes[i].index, i);
		int rc = wf_refill(q);
		if (rc) return rc;
	}
	memcpy(v, plan, offsetof(struct wf_verbs, turn));
	for (uint32_t d = 0; d < WF_DEVICES; d++)
		if (!v->device[d].cq) v->device[d] = plan->device[d]; /* those of before have work under way */
	v->next = plan->next;
	v->next.single = single;
	v->single = 0;
	/* later a flush may read it outside the gate (late.c) */
	if (!first) wf_put(c->lanes[0].ops, (uint64_t)(uintptr_t)&wf_verbs_ops);
	if (!first || wf_get(c->kind) == WF_KIND_RECV ||
			(wf_get(c->queue_head) == wf_get(c->queue_tail) && wf_get(c->head_seq) >= v->next.from))
		wf_take_lanes(c, v);
	return 0;
}

void wf_verbs_detach(struct wf_comm* c) { wf_store(c->nlanes, 0u); }

uint32_t wf_verbs_due(struct wf_comm* c, uint32_t lane) { return wf_get(wf_verbs_of(c)->qp[lane].due); }

/* May run on any thread. Returns 1, and the fault in *read, if the read of a flush failed; other faults are known to
 * the caller already. */
int wf_verbs_drain(struct wf_comm* c, struct wf_fault* read) {
	struct wf_verbs* v = wf_verbs_of(c);
	struct wf_thread *self = wf_self, scratch = {.used = 1};
	wf_self = &scratch;
	for (uint32_t d = 0; wf_get(c->nlanes) && d < wf_get(v->devices); d++)
		if (wf_get(v->device[d].cq) && wf_poll_now(c, v, d, 1u << 16) < 0 && scratch.fault.want >> 60 == WF_WR_READ)
			*read = scratch.fault;
	wf_self = self;
	return read->kind != 0;
}
