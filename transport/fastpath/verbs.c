/* verbs.c: lanes that are queue pairs: CTS lines and records are written into the peer's ring, data into its buffers.
 *
 *  receiver  flush writes a group's CTS lines, on lane 0. A completion with an immediate says which share of which group came.
 *  sender    tx holds posted groups. A group uses some lanes; each writes its share of every message, and the last request of a
 *            share tells the receiver. A group's sends are done when the last request of every share is complete.
 *
 * Lane 0's ops drive all lanes. Every word of the ring and every immediate is the peer's: it is checked before it is used. */
#include "post.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define WF_POLLS 4   /* batches of a queue that one call takes */
#define WF_DUE 4     /* receives of a lane that are posted again together: more would make one message wait */
#define WF_ALIGN 128 /* shares are multiples of it */
#define WF_RECORD 44 /* bytes of struct wf_record that travel */

/* The lanes that were attached last carry groups from now on. */
static WF_COLD void wf_take_lanes(struct wf_comm* c, struct wf_verbs* v) {
	wf_put(v->width, wf_get(v->next.width)), wf_put(v->single, wf_get(v->next.single));
	wf_store(c->nlanes, wf_get(v->next.lanes));
	wf_put(v->next.lanes, 0u);
}

/* Begins the group at the head of tx: how many lanes, from which on, and what is cut where, which later weights do not move. */
static void wf_begin_group(struct wf_comm* c, struct wf_verbs* v, uint32_t first) {
	if (wf_unlikely(wf_get(v->next.lanes)) && wf_get(c->req[first].seq) >= wf_get(v->next.from)) wf_take_lanes(c, v);
	uint32_t n = 0, lanes = wf_get(c->nlanes), lane = wf_get(v->rotor), turn = wf_get(v->turn), place = wf_load(c->order[turn]), sum = 0;
	uint64_t bytes = 0;
	for (uint32_t slot = first; slot != WF_NONE; slot = wf_get(c->req[slot].next), n++) bytes += wf_get(c->req[slot].e[0].size);
	uint32_t shares = bytes <= wf_get(v->stripe_min) ? 1 : wf_get(v->width), above = wf_get(v->ar_threshold);
	if (shares > 1) wf_put(v->rotor, (lane + shares) % lanes);
	else lane = place % WF_LANES % lanes, wf_put(v->turn, turn + 1 < wf_load(c->places) ? turn + 1 : 0);
	wf_put(v->shares, shares), wf_put(v->lane, lane), wf_put(v->n, n);
	wf_put(v->timed, (uint32_t)(shares > 1 || (place >= WF_LANES && wf_get(v->qp[lane].sent) == wf_get(v->qp[lane].base))));
	wf_put(v->plain, (uint32_t)(n == 1 && shares == 1 && bytes <= wf_get(v->qp[lane].most) && (!above || bytes <= above)));
	wf_put(v->todo, (uint32_t)((1ull << shares) - 1)), wf_put(c->req[first].frames, shares);
	for (uint32_t i = 0; i < shares; sum += wf_load(c->gauge[(lane + i++) % lanes].weight))
		wf_put(v->part[i].entry, 0u), wf_put(v->part[i].offset, 0u), wf_put(v->part[i].cut, sum);
	for (uint32_t i = 1; i < shares; i++) wf_put(v->part[i].cut, (uint32_t)(((uint64_t)wf_get(v->part[i].cut) << 16) / (sum ? sum : 1)));
}

/* Where that share of a message begins; every share but the last is a multiple of WF_ALIGN. */
static inline uint64_t wf_cut(struct wf_verbs* v, uint32_t share, uint64_t size) {
	return !share ? 0 : share == wf_get(v->shares) ? size : (size * wf_get(v->part[share].cut) >> 16) / WF_ALIGN * WF_ALIGN;
}

/* The immediate that ends a share. */
static void wf_imm(struct wf_verbs* v, struct ibv_send_wr* wr, uint64_t seq, uint32_t share, uint32_t kind) {
	wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr->imm_data = htonl((uint32_t)(seq & 4095) << 20 | (wf_get(v->shares) - 1) << 15 | share << 10 | kind << 8);
}

/* Fills the next request of a share. 1: it ends the share, 0: more follow, -1: fault. */
static int wf_fill(struct wf_comm* c, struct wf_verbs* v, struct wf_qp* q, uint32_t first, uint32_t share, struct ibv_send_wr* wr, struct ibv_sge* sge) {
	uint32_t n = wf_get(v->n), above = wf_get(v->ar_threshold), line = wf_get(c->req[first].line) % WF_LINES;
	uint32_t entry = wf_get(v->part[share].entry), offset = wf_get(v->part[share].offset);
	uint64_t seq = wf_get(c->req[first].seq);
	*wr = (struct ibv_send_wr){.opcode = IBV_WR_RDMA_WRITE};
	for (; entry < n; entry++, offset = 0) {
		struct wf_req* r = &c->req[wf_get(c->tx[(wf_get(c->tx_head) + entry) % WF_REQUESTS])];
		uint64_t size = wf_get(r->e[0].size), from = wf_cut(v, share, size) + offset, to = wf_cut(v, share + 1, size);
		if (from >= to) continue;
		uint32_t left = (uint32_t)(to - from), len = left < wf_get(q->most) ? left : wf_get(q->most);
		struct wf_mr* mr = wf_mr_lookup(wf_get(r->e[0].mr));
		if (wf_unlikely(!mr)) return wf_raise(WF_FAULT_INTERNAL, "memory of a posted send is gone", 0, seq, size, 0);
		*sge = (struct ibv_sge){.addr = wf_get(r->e[0].data) + from, .length = len, .lkey = wf_get(mr->lkey[wf_get(q->device)])};
		wr->sg_list = sge, wr->num_sge = 1;
		if (len <= wf_get(q->inline_size) && wf_get(mr->kind) == WF_MEM_HOST) wr->send_flags = IBV_SEND_INLINE;
		wr->wr.rdma.remote_addr = wf_get(c->ring[line + entry].addr) + from;
		wr->wr.rdma.rkey = wf_get(c->ring[line + entry].rkey[wf_get(q->peer_device)]);
		wf_put(v->part[share].entry, entry), wf_put(v->part[share].offset, offset + len);
		if (wf_get(v->timed)) wf_put(q->sent, wf_get(q->sent) + len);
		int last = wf_get(v->plain) || (share && entry == n - 1 && len == left && (!above || (n == 1 && len <= above)));
		if (last) wf_imm(v, wr, seq, share, WF_IMM_DATA);
		return last;
	}
	wf_put(v->part[share].entry, entry), wf_put(v->part[share].offset, 0u);
	wf_line_wr(c, q, wr, sge, line, WF_RECORD);
	if (!share && !wf_get(v->plain)) {
		struct wf_record* record = (struct wf_record*)(void*)&c->out[line];
		wf_put(record->seq, seq), wf_put(record->n, n);
		for (uint32_t i = 0; i < n; i++) wf_put(record->size[i], wf_get(c->req[wf_get(c->tx[(wf_get(c->tx_head) + i) % WF_REQUESTS])].e[0].size));
	} else wr->sg_list = NULL, wr->num_sge = 0, wr->send_flags = 0;
	wf_imm(v, wr, seq, share, share || wf_get(v->plain) ? WF_IMM_DATA : WF_IMM_RECORD);
	return 1;
}

/* Posts what its lane has room for of a share of the group at the head of tx. 1: all of it, 0: more follows, -1: fault. */
static int wf_share(struct wf_comm* c, struct wf_verbs* v, uint32_t first, uint32_t share) {
	struct ibv_send_wr wr[WF_BATCH];
	struct ibv_sge sge[WF_BATCH];
	uint32_t lane = (wf_get(v->lane) + share) % wf_get(c->nlanes), room, n;
	struct wf_lane* l = &c->lanes[lane];
	struct wf_qp* q = &v->qp[lane];
	uint32_t ahead = wf_get(l->posted) - wf_get(l->completed);
	int ends = 0, idle = wf_get(v->timed) && wf_get(q->sent) == wf_get(q->base);
	if (idle) wf_put(q->since, wf_clock());
	while (!ends && (room = wf_room(l, q))) {
		for (n = 0; n < room && n < WF_BATCH && !ends; n++) {
			if ((ends = wf_fill(c, v, q, first, share, &wr[n], &sge[n])) < 0) return -1;
			wf_number(v, l, q, &wr[n], ends ? WF_WR_DATA : WF_WR_PART, first, ends || n + 1 == room || n + 1 == WF_BATCH);
		}
		if (wf_post(l, q, wr, n) < 0) return -1;
		if (!idle) continue;
		wf_put(q->each, wf_get(v->shares) > 1 ? 0 : wf_get(q->sent) - wf_get(q->base)), wf_put(q->sent, wf_get(q->sent) + wf_get(q->each) * ahead);
		wf_put(q->mark, wf_get(l->posted) - 1), wf_put(q->goal, wf_get(q->sent)), idle = 0;
	}
	return ends;
}

/* Posts groups, as far as the queues have room. */
static __attribute__((noinline)) int wf_verbs_groups(struct wf_comm* c, struct wf_verbs* v) {
	while (wf_get(c->tx_head) != wf_get(c->tx_tail)) {
		uint32_t first = wf_get(c->tx[wf_get(c->tx_head) % WF_REQUESTS]);
		if (!wf_get(v->shares)) wf_begin_group(c, v, first);
		for (uint32_t todo = wf_get(v->todo); todo; todo &= todo - 1) {
			int ends = wf_share(c, v, first, (uint32_t)__builtin_ctz(todo));
			if (ends < 0) return -1;
			if (ends) wf_put(v->todo, wf_get(v->todo) & ~(todo & -todo));
		}
		if (wf_get(v->todo)) return 0;
		wf_put(c->tx_head, wf_get(c->tx_head) + wf_get(v->n));
		wf_put(v->shares, 0u);
	}
	return 0;
}

/* Most messages: alone in their group, and one request. 0: the next is none of those, or the queue is full; 1: posted; -1: fault. */
static inline int wf_single(struct wf_comm* c, struct wf_verbs* v, uint32_t head) {
	uint32_t slot = wf_get(c->tx[head % WF_REQUESTS]), turn = wf_get(v->turn), lane = wf_load(c->order[turn]);
	if (wf_unlikely(lane >= wf_get(c->nlanes))) return 0; /* its time is to be taken, or it is not there yet */
	struct wf_req* r = &c->req[slot];
	struct wf_qp* q = &v->qp[lane];
	struct wf_lane* l = &c->lanes[lane];
	uint32_t size = wf_get(r->e[0].size);
	uint64_t seq = wf_get(r->seq);
	if (!size || size > wf_get(v->single) || wf_get(v->shares) || wf_get(r->next) != WF_NONE || !wf_room(l, q)) return 0;
	struct wf_mr* mr = wf_mr_of(wf_get(r->e[0].mr));
	struct wf_cts_line* line = &c->ring[wf_get(r->line) % WF_LINES];
	struct ibv_sge sge = {.addr = wf_get(r->e[0].data), .length = size, .lkey = wf_get(mr->lkey[wf_get(q->device)])};
	struct ibv_send_wr wr; /* what a WRITE does not read stays as it is */
	wr.sg_list = &sge, wr.num_sge = 1, wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, wr.imm_data = htonl((uint32_t)(seq & 4095) << 20);
	wr.send_flags = size <= wf_get(q->inline_size) && wf_get(mr->kind) == WF_MEM_HOST ? IBV_SEND_INLINE : 0;
	wr.wr.rdma.remote_addr = wf_get(line->addr), wr.wr.rdma.rkey = wf_get(line->rkey[wf_get(q->peer_device)]);
	wf_put(r->frames, 1u);
	wf_put(v->turn, turn + 1 < wf_load(c->places) ? turn + 1 : 0);
	wf_put(c->tx_head, head + 1);
	wf_number(v, l, q, &wr, WF_WR_DATA, slot, 1);
	return wf_post(l, q, &wr, 1) < 0 ? -1 : 1;
}

/* Posts from tx, as far as the queues have room. */
static int wf_verbs_data(struct wf_comm* c, struct wf_verbs* v) {
	uint32_t head, tail = wf_get(c->tx_tail);
	while ((head = wf_get(c->tx_head)) != tail) {
		int one = wf_single(c, v, head);
		if (wf_unlikely(one <= 0)) return one ? one : wf_verbs_groups(c, v);
	}
	return 0;
}

static int wf_verbs_send(struct wf_comm* c, struct wf_lane* l) {
	(void)l;
	return wf_get(c->kind) == WF_KIND_SEND ? wf_verbs_data(c, wf_verbs_of(c)) : wf_verbs_reads(c, wf_verbs_of(c)) < 0 ? -1 : 0;
}

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
	uint32_t n = wf_get(r->n), came = wf_get(r->cursor);
	if (wf_likely(n == 1 && !came && !(imm & 0xfff00) && bytes <= wf_get(r->e[0].cap))) { /* all of the only message */
		wf_put(r->e[0].size, bytes), wf_put(r->frames, 0u);
		wf_put(c->bytes, wf_get(c->bytes) + bytes), wf_put(c->messages, wf_get(c->messages) + 1);
		wf_end_group(c, r, WF_REQ_DONE);
		return 0;
	}
	if (!came) wf_put(r->entry, shares);
	if (share >= shares || shares != wf_get(r->entry)) return wf_verbs_wrong(lane, seq, "share of a message", wf_get(r->entry), shares << 8 | share);
	if (came >> share & 1) return 0;
	if (kind == WF_IMM_RECORD && !share) {
		struct wf_record* record = (struct wf_record*)(void*)&c->ring[wf_get(r->line) % WF_LINES];
		if (wf_get(record->seq) != seq || wf_get(record->n) != n) return wf_verbs_wrong(lane, seq, "record of another group", n, wf_get(record->n));
		for (uint32_t i = 0; i < n; i++) {
			uint32_t size = wf_get(record->size[i]);
			if (size > wf_get(r->e[i].cap)) return wf_verbs_wrong(lane, seq, "message larger than its receive", wf_get(r->e[i].cap), size);
			wf_put(r->e[i].size, size);
		}
	} else if (kind != WF_IMM_DATA || (!share && (shares > 1 || n > 1))) {
		return wf_verbs_wrong(lane, seq, "immediate of a share", n, imm);
	} else if (!share) {
		if (bytes > wf_get(r->e[0].cap)) return wf_verbs_wrong(lane, seq, "message larger than its receive", wf_get(r->e[0].cap), bytes);
		wf_put(r->e[0].size, bytes);
	}
	wf_put(r->cursor, came |= 1u << share);
	if (came != (uint32_t)((1ull << shares) - 1)) return 0;
	wf_put(r->left, 0u), wf_put(r->frames, 1u);
	wf_arrived(c, slot);
	return 0;
}

/* What the lane was busy with, up to its mark, is complete; what was posted since follows. */
static void wf_sample(struct wf_gauge* g, struct wf_lane* l, struct wf_qp* q, uint32_t number) {
	if ((number - wf_get(q->mark)) & 0x20000000) return; /* numbers have 30 bits */
	uint64_t now = wf_clock();
	wf_put(g->bytes, wf_get(g->bytes) + wf_get(q->goal) - wf_get(q->base));
	wf_put(g->busy, wf_get(g->busy) + now - wf_get(q->since));
	wf_put(q->sent, wf_get(q->sent) + wf_get(q->each) * (wf_get(l->posted) - 1 - wf_get(q->mark))), wf_put(q->each, (uint64_t)0);
	wf_put(q->since, now), wf_put(q->base, wf_get(q->goal)), wf_put(q->mark, wf_get(l->posted) - 1), wf_put(q->goal, wf_get(q->sent));
}

/* A signaled request of ours is complete, and all before it on its lane. */
static void wf_completed(struct wf_comm* c, struct wf_verbs* v, uint64_t id) {
	uint32_t kind = (uint32_t)(id >> 60), slot = (uint32_t)(id >> 30) % WF_SLOTS, lane = (uint32_t)(id >> 54 & 63) % WF_LANES;
	struct wf_lane* l = &c->lanes[lane];
	struct wf_req* r = &c->req[slot];
	uint32_t d = kind == WF_WR_READ ? lane % WF_DEVICES : wf_get(v->qp[lane].device), completed = wf_get(l->completed), left;
	wf_put(v->open[d], wf_get(v->open[d]) - 1);
	if (kind == WF_WR_READ) wf_put(v->reads[d], wf_get(v->reads[d]) - 1);
	else wf_put(l->completed, completed + (((uint32_t)id + 1 - completed) & 0x3fffffff));
	if (wf_unlikely(wf_get(v->qp[lane].sent) != wf_get(v->qp[lane].base))) wf_sample(&c->gauge[lane], l, &v->qp[lane], (uint32_t)id);
	if (kind != WF_WR_DATA && kind != WF_WR_READ) return;
	wf_put(r->frames, left = wf_get(r->frames) - 1);
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
		for (uint32_t i = 0; i < n; i++) wr[i] = (struct ibv_recv_wr){.wr_id = (uint64_t)WF_WR_RECV << 60 | wf_get(q->id), .next = i + 1 < n ? &wr[i + 1] : NULL};
		int rc = qp->context->ops.post_recv(qp, wr, &bad);
		if (rc) return rc;
		wf_put(q->due, due - n);
	}
	return 0;
}

static int wf_refill_some(struct wf_verbs* v, uint32_t lanes) {
	int rc = 0;
	for (; lanes && !rc; lanes &= lanes - 1)
		if ((rc = wf_refill(&v->qp[__builtin_ctz(lanes)]))) rc = wf_post_failed((uint32_t)__builtin_ctz(lanes), "ibv_post_recv", rc);
	return rc;
}

/* Takes in what a device's queue has. What completes beside an error still counts; flushed requests are not its cause. */
static inline __attribute__((always_inline)) int wf_poll(struct wf_comm* c, struct wf_verbs* v, uint32_t d, uint32_t polls) {
	struct ibv_cq* cq = (struct ibv_cq*)(uintptr_t)wf_get(v->cq[d]);
	struct ibv_wc wc[WF_BATCH], bad;
	uint32_t failed = 0, refill = 0;
	int got, rc = 0;
	do {
		got = cq->context->ops.poll_cq(cq, WF_BATCH, wc);
		if (wf_unlikely(got < 0)) return wf_post_failed(WF_LANES + d, "ibv_poll_cq", EIO); /* only the sign means something */
		for (struct ibv_wc *w = wc, *end = wc + got; w < end; w++) {
			uint32_t lane = (uint32_t)(w->wr_id >> 54) % WF_LANES, due;
			if (wf_unlikely(w->status != IBV_WC_SUCCESS)) {
				uint32_t rank = 1 + (w->status != IBV_WC_WR_FLUSH_ERR) + 2 * (w->wr_id >> 60 == WF_WR_READ); /* see wf_verbs_drain */
				if (rank > failed) bad = *w, failed = rank;
				polls += polls < WF_POLLS; /* the cause may be behind */
			} else if (w->wr_id >> 60 != WF_WR_RECV) {
				wf_completed(c, v, w->wr_id);
			} else {
				wf_put(v->qp[lane].due, due = wf_get(v->qp[lane].due) + 1);
				refill |= (uint32_t)(due >= WF_DUE) << lane; /* one post for some: wf_verbs_flush knows what is left */
				if (wf_unlikely(!(w->wc_flags & IBV_WC_WITH_IMM))) rc = wf_verbs_wrong(lane, 0, "message without immediate", 0, w->byte_len);
				else if (rc >= 0) rc = wf_share_came(c, lane, ntohl(w->imm_data), w->byte_len);
			}
		}
	} while (wf_unlikely(got == WF_BATCH) && --polls);
	if (refill && wf_refill_some(v, refill) < 0) rc = -1;
	if (wf_likely(!failed)) return rc;
	return wf_lane_fault(WF_FAULT_COMPLETION, (uint32_t)(bad.wr_id >> 54 & 63), "completion", (int)bad.status, 0, bad.wr_id, bad.vendor_err);
}

static WF_COLD int wf_poll_now(struct wf_comm* c, struct wf_verbs* v, uint32_t d, uint32_t polls) { return wf_poll(c, v, d, polls); }

static int wf_verbs_progress(struct wf_comm* c, struct wf_lane* l) {
	struct wf_verbs* v = wf_verbs_of(c);
	uint32_t send = wf_get(c->kind) == WF_KIND_SEND;
	uint32_t d = 0, devices = wf_get(v->devices);
	do if (wf_likely(wf_get(v->cq[d])) && (!send || wf_get(v->open[d])) && wf_poll(c, v, d, WF_POLLS) < 0) return -1;
	while (wf_unlikely(++d < devices));
	return wf_unlikely(wf_get(c->tx_head) != wf_get(c->tx_tail)) ? wf_verbs_send(c, l) : 0;
}

/* Writes the CTS lines of [cts_out, next_seq), a request a group. 0: all are posted, 1: some are left. */
static int wf_verbs_flush(struct wf_comm* c, struct wf_lane* l) {
	struct wf_verbs* v = wf_verbs_of(c);
	struct wf_qp* q = &v->qp[0];
	uint64_t seq = wf_get(c->cts_out), next = wf_get(c->next_seq);
	if (wf_unlikely(wf_get(c->kind) != WF_KIND_RECV || seq == next)) return 0;
	if (wf_unlikely(next - wf_get(c->tail_seq) > wf_get(v->spare)) && wf_refill_some(v, ~0u >> (32 - wf_get(c->nlanes))) < 0) return -1;
	if (wf_unlikely(!wf_room(l, q)) && wf_poll_now(c, v, wf_get(q->device), 1) < 0) return -1;
	for (; seq < next && wf_room(l, q); seq++) {
		uint32_t slot = wf_get(c->group[seq % WF_LINES]);
		struct wf_req* r = &c->req[slot];
		uint32_t line = wf_get(r->line) % WF_LINES, group = wf_get(r->n), i = 0;
		struct ibv_send_wr wr;
		struct ibv_sge sge;
		do wf_cts(&c->out[line + i], &r->e[i], wf_get(v->devices), group << 16 | i, seq);
		while (wf_unlikely(++i < group));
		wr.opcode = IBV_WR_RDMA_WRITE;
		wf_line_wr(c, q, &wr, &sge, line, group * (uint32_t)sizeof *c->out);
		wf_number(v, l, q, &wr, WF_WR_CTS, slot, wf_get(q->silent) + 1 >= wf_get(q->depth) / 4);
		wf_put(c->cts_out, seq + 1);
		if (wf_post(l, q, &wr, 1) < 0) return -1;
	}
	return seq < next;
}

static const struct wf_lane_ops wf_verbs_ops = {
	.send = wf_verbs_send, .progress = wf_verbs_progress, .flush = wf_verbs_flush, .land = wf_verbs_land,
};

/* The first lanes, or more of them. A sender's further ones wait for their first group, and no message is posted the short way
 * meanwhile; when they cannot be had nothing of what is in use has changed. */
int wf_verbs_attach(struct wf_comm* c, const struct wf_verbs* plan) {
	struct wf_verbs* v = wf_verbs_of(c);
	uint32_t first = wf_get(c->nlanes), lanes = plan->next.lanes, single = plan->next.width > 1 ? plan->stripe_min : WF_SIZE_MAX;
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
		wf_put(c->lanes[i].index, i);
		int rc = wf_refill(q);
		if (rc) return rc;
	}
	memcpy(v, plan, offsetof(struct wf_verbs, width));
	v->next.single = single, v->single = 0;
	if (!first) wf_put(c->lanes[0].ops, (uint64_t)(uintptr_t)&wf_verbs_ops); /* later a flush may read it outside the gate (late.c) */
	if (!first || wf_get(c->kind) == WF_KIND_RECV || (wf_get(c->tx_head) == wf_get(c->tx_tail) && wf_get(c->head_seq) >= v->next.from)) wf_take_lanes(c, v);
	return 0;
}

void wf_verbs_detach(struct wf_comm* c) { wf_store(c->nlanes, 0u); }

uint32_t wf_verbs_due(struct wf_comm* c, uint32_t lane) { return wf_get(wf_verbs_of(c)->qp[lane].due); }

/* On whatever thread. Faults of what is found are not news to who asks, but that a flush's read failed: 1, and it is in *read. */
int wf_verbs_drain(struct wf_comm* c, struct wf_fault* read) {
	struct wf_verbs* v = wf_verbs_of(c);
	struct wf_thread *self = wf_self, scratch = {.used = 1};
	wf_self = &scratch;
	for (uint32_t d = 0; wf_get(c->nlanes) && d < wf_get(v->devices); d++)
		if (wf_get(v->cq[d]) && wf_poll_now(c, v, d, 1u << 16) < 0 && scratch.fault.want >> 60 == WF_WR_READ) *read = scratch.fault;
	wf_self = self;
	return read->kind != 0;
}
