/* write.c: the sender's half of lanes that are queue pairs. The queue holds posted groups. A group uses some lanes;
 * each writes its share of every message into the peer's buffers, and the last request of a share tells the
 * receiver. */
#include "count.h"
#include "event.h"
#include "post.h"

#include <arpa/inet.h>
#include <string.h>

#define WF_ALIGN 128 /* shares are multiples of it */
#define WF_RECORD 44 /* bytes of struct wf_record that travel */

/* Single requests have no place for events: while a profiler listens, every message is posted as a group. */
void wf_verbs_hears(struct wf_comm* c, int on) {
	struct wf_verbs* v = wf_verbs_of(c);
	wf_put(v->single, on || wf_get(v->next.lanes) ? 0u : wf_get(v->next.single));
}

/* The lanes that were attached last carry groups from now on. */
void wf_take_lanes(struct wf_comm* c, struct wf_verbs* v) {
	wf_put(v->width, wf_get(v->next.width));
	wf_store(c->nlanes, wf_get(v->next.lanes));
	wf_put(v->next.lanes, 0u);
	wf_verbs_hears(c, (int)wf_get(c->heard));
}

/* Where that share of a message begins; every share but the last is a multiple of WF_ALIGN. */
static inline uint64_t wf_cut(struct wf_verbs* v, uint32_t share, uint64_t size) {
	if (!share) return 0;
	return share == wf_get(v->shares) ? size : (size * wf_get(v->part[share].cut) >> 16) / WF_ALIGN * WF_ALIGN;
}

/* How many shares each event of the group at the head waits for, and what each lane carries. */
static WF_COLD void wf_group_heard(struct wf_comm* c, struct wf_verbs* v, uint32_t first) {
	for (uint32_t i = 0; i < WF_GROUP; i++) wf_put(c->req_events[first].shares_left[i], 0u);
	for (uint32_t i = 0; i < wf_get(v->shares); i++) {
		uint32_t lane = (wf_get(v->lane) + i) % wf_get(c->nlanes);
		uint64_t bytes = 0;
		for (uint32_t slot = first; slot != WF_NONE; slot = wf_get(c->req[slot].next)) {
			uint64_t size = wf_get(c->req[slot].e[0].size);
			bytes += wf_cut(v, i + 1, size) - wf_cut(v, i, size);
		}
		wf_lane_event(c, first, lane, 1);
		wf_count_lane(c, lane, bytes);
	}
}

/* Begins the group at the head of the queue: decides how many lanes carry it, which is the first, and where messages
 * are cut. Weights that change later do not move the cuts. */
static void wf_begin_group(struct wf_comm* c, struct wf_verbs* v, uint32_t first) {
	if (wf_unlikely(wf_get(v->next.lanes)) && wf_get(c->req[first].seq) >= wf_get(v->next.from)) wf_take_lanes(c, v);
	uint32_t n = 0, lanes = wf_get(c->nlanes), lane = wf_get(v->rotor), turn = wf_get(v->turn), sum = 0;
	int timed = (int)wf_load(c->order[turn].timed);
	uint64_t bytes = 0;
	for (uint32_t slot = first; slot != WF_NONE; slot = wf_get(c->req[slot].next), n++)
		bytes += wf_get(c->req[slot].e[0].size);
	uint32_t shares = bytes <= wf_get(v->stripe_min) ? 1 : wf_get(v->width), above = wf_get(v->ar_threshold);
	if (shares > 1) wf_put(v->rotor, (lane + shares) % lanes);
	else {
		lane = wf_load(c->order[turn].lane) % lanes;
		wf_put(v->turn, turn + 1 < wf_load(c->places) ? turn + 1 : 0);
	}
	wf_put(v->shares, shares);
	wf_put(v->lane, lane);
	wf_put(v->n, n);
	wf_put(v->timed, (uint32_t)(shares > 1 ||
		(timed && wf_get(v->qp[lane].sent) == wf_get(v->qp[lane].base))));
	wf_put(v->plain, (uint32_t)(n == 1 && shares == 1 && bytes <= wf_get(v->qp[lane].most) &&
		(!above || bytes <= above)));
	wf_put(v->todo, (uint32_t)((1ull << shares) - 1));
	wf_put(c->req[first].parts, shares);
	wf_put(v->heard, (uint32_t)(wf_get(c->events) != 0));
	for (uint32_t i = 0; i < shares; i++) {
		wf_put(v->part[i].entry, 0u);
		wf_put(v->part[i].offset, 0u);
		wf_put(v->part[i].cut, sum);
		sum += wf_load(c->gauge[(lane + i) % lanes].weight);
	}
	for (uint32_t i = 1; i < shares; i++)
		wf_put(v->part[i].cut, (uint32_t)(((uint64_t)wf_get(v->part[i].cut) << 16) / (sum ? sum : 1)));
	if (wf_unlikely(wf_get(v->heard))) wf_group_heard(c, v, first);
}

/* The immediate that ends a share. */
static void wf_imm(struct wf_verbs* v, struct ibv_send_wr* wr, uint64_t seq, uint32_t share, uint32_t kind) {
	wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr->imm_data = htonl((uint32_t)(seq & 4095) << 20 | (wf_get(v->shares) - 1) << 15 | share << 10 | kind << 8);
}

/* Fills the next request of a share. 1: it ends the share, 0: more follow, -1: fault. */
static int wf_fill(struct wf_comm* c, struct wf_verbs* v, struct wf_qp* q, uint32_t first, uint32_t share,
	struct ibv_send_wr* wr, struct ibv_sge* sge) {
	uint32_t n = wf_get(v->n), above = wf_get(v->ar_threshold), line = wf_get(c->req[first].line) % WF_LINES;
	uint32_t entry = wf_get(v->part[share].entry), offset = wf_get(v->part[share].offset);
	uint64_t seq = wf_get(c->req[first].seq);
	*wr = (struct ibv_send_wr){.opcode = IBV_WR_RDMA_WRITE};
	for (; entry < n; entry++, offset = 0) {
		struct wf_req* r = &c->req[wf_get(c->queue[(wf_get(c->queue_head) + entry) % WF_REQUESTS])];
		uint64_t size = wf_get(r->e[0].size), from = wf_cut(v, share, size) + offset, to = wf_cut(v, share + 1, size);
		if (from >= to) continue;
		uint32_t left = (uint32_t)(to - from), len = left < wf_get(q->most) ? left : wf_get(q->most);
		struct wf_mr* mr = wf_mr_lookup(wf_get(r->e[0].mr));
		if (wf_unlikely(!mr)) return wf_raise(WF_FAULT_INTERNAL, "memory of a posted send is gone", 0, seq, size, 0);
		*sge = (struct ibv_sge){.addr = wf_get(r->e[0].data) + from, .length = len,
			.lkey = wf_get(mr->key[wf_get(q->device)].lkey)};
		wr->sg_list = sge;
		wr->num_sge = 1;
		if (len <= wf_get(q->inline_size) && wf_get(mr->kind) == WF_MEM_HOST) wr->send_flags = IBV_SEND_INLINE;
		wr->wr.rdma.remote_addr = wf_get(c->ring[line + entry].addr) + from;
		wr->wr.rdma.rkey = wf_get(c->ring[line + entry].rkey[wf_get(q->peer_device)]);
		wf_put(v->part[share].entry, entry);
		wf_put(v->part[share].offset, offset + len);
		if (wf_get(v->timed)) wf_put(q->sent, wf_get(q->sent) + len);
		int last = wf_get(v->plain) || (share && entry == n - 1 && len == left && (!above || (n == 1 && len <= above)));
		if (last) wf_imm(v, wr, seq, share, WF_IMM_DATA);
		return last;
	}
	wf_put(v->part[share].entry, entry);
	wf_put(v->part[share].offset, 0u);
	wf_line_wr(c, q, wr, sge, &c->out[line], line, WF_RECORD);
	if (!share && !wf_get(v->plain)) {
		struct wf_record* record = wf_record_on(&c->out[line]);
		wf_put(record->seq, seq);
		wf_put(record->n, n);
		for (uint32_t i = 0; i < n; i++)
			wf_put(record->size[i],
				wf_get(c->req[wf_get(c->queue[(wf_get(c->queue_head) + i) % WF_REQUESTS])].e[0].size));
	} else {
		wr->sg_list = NULL;
		wr->num_sge = 0;
		wr->send_flags = 0;
	}
	wf_imm(v, wr, seq, share, share || wf_get(v->plain) ? WF_IMM_DATA : WF_IMM_RECORD);
	return 1;
}

/* Begins a message's event at the first request that the lane writes of it. */
static WF_COLD void wf_write_starts(struct wf_comm* c, struct wf_qp* q, uint32_t lane, uint32_t slot, uint64_t bytes,
	struct ibv_send_wr* wr) {
	uint32_t event = lane % WF_GROUP;
	int64_t id = NCCL_PROFILER_NET_TYPE_IB | NCCL_PROFILER_NET_IB_VER;
	union wf_event what = {.ib = {.type = ncclProfileQp, .qp = {.device = (int)wf_get(q->device), .wr_id = wr->wr_id,
		.opcode = (int)wr->opcode, .qpNum = (int)wf_ibv(wf_get(q->qp))->qp_num, .length = bytes}}};
	wf_event_start(c, slot, event, 0, id, &what);
}

/* Does so for every message of the group at the head, with the bytes that all lanes of the same event carry of it. */
static WF_COLD void wf_share_starts(struct wf_comm* c, struct wf_verbs* v, uint32_t lane, uint32_t first,
	struct ibv_send_wr* wr) {
	for (uint32_t slot = first; slot != WF_NONE; slot = wf_get(c->req[slot].next)) {
		uint64_t size = wf_get(c->req[slot].e[0].size), bytes = 0;
		for (uint32_t i = 0; i < wf_get(v->shares); i++)
			if ((wf_get(v->lane) + i) % wf_get(c->nlanes) % WF_GROUP == lane % WF_GROUP)
				bytes += wf_cut(v, i + 1, size) - wf_cut(v, i, size);
		if (bytes || !size) wf_write_starts(c, &v->qp[lane], lane, slot, bytes, wr);
	}
}

/* Posts as much of a share of the group at the head of the queue as its lane has room for. 1: all of it, 0: more
 * follows, -1: fault. */
static int wf_share(struct wf_comm* c, struct wf_verbs* v, uint32_t first, uint32_t share) {
	struct ibv_send_wr wr[WF_BATCH];
	struct ibv_sge sge[WF_BATCH];
	uint32_t lane = (wf_get(v->lane) + share) % wf_get(c->nlanes), room, n;
	struct wf_lane* l = &c->lanes[lane];
	struct wf_qp* q = &v->qp[lane];
	uint32_t ahead = wf_get(l->posted) - wf_get(l->completed);
	uint32_t end = wf_get(v->heard) ? WF_WR_HEARD : WF_WR_DATA;
	int begins = end == WF_WR_HEARD && !wf_get(v->part[share].entry) && !wf_get(v->part[share].offset);
	int ends = 0, idle = wf_get(v->timed) && wf_get(q->sent) == wf_get(q->base);
	if (idle) wf_put(q->since, wf_clock());
	while (!ends && (room = wf_room(l, q))) {
		for (n = 0; n < room && n < WF_BATCH && !ends; n++) {
			if ((ends = wf_fill(c, v, q, first, share, &wr[n], &sge[n])) < 0) return -1;
			wf_number(v, l, q, &wr[n], ends ? end : WF_WR_PART, first, ends || n + 1 == room || n + 1 == WF_BATCH);
			if (wf_unlikely(begins)) wf_share_starts(c, v, lane, first, &wr[n]);
			begins = 0;
		}
		if (wf_post(l, q, wr, n) < 0) return -1;
		if (!idle) continue;
		wf_put(q->each, wf_get(v->shares) > 1 ? 0 : wf_get(q->sent) - wf_get(q->base));
		wf_put(q->sent, wf_get(q->sent) + wf_get(q->each) * ahead);
		wf_put(q->mark, wf_get(l->posted) - 1);
		wf_put(q->goal, wf_get(q->sent));
		idle = 0;
	}
	return ends;
}

/* Posts groups, as far as the send queues have room. */
static __attribute__((noinline)) int wf_verbs_groups(struct wf_comm* c, struct wf_verbs* v) {
	while (wf_get(c->queue_head) != wf_get(c->queue_tail)) {
		uint32_t first = wf_get(c->queue[wf_get(c->queue_head) % WF_REQUESTS]);
		if (!wf_get(v->shares)) wf_begin_group(c, v, first);
		for (uint32_t todo = wf_get(v->todo); todo; todo &= todo - 1) {
			int ends = wf_share(c, v, first, (uint32_t)__builtin_ctz(todo));
			if (ends < 0) return -1;
			if (ends) wf_put(v->todo, wf_get(v->todo) & ~(todo & -todo));
		}
		if (wf_get(v->todo)) return 0;
		wf_put(c->queue_head, wf_get(c->queue_head) + wf_get(v->n));
		wf_put(v->shares, 0u);
	}
	return 0;
}

/* Posts a message that is alone in its group and one request, as most are. 0: the next is not of that kind, or the
 * queue is full; 1: posted; -1: fault. */
static inline int wf_single(struct wf_comm* c, struct wf_verbs* v, uint32_t head) {
	uint32_t slot = wf_get(c->queue[head % WF_REQUESTS]), turn = wf_get(v->turn);
	uint32_t lane = wf_load(c->order[turn].lane);
	if (wf_unlikely(lane >= wf_get(c->nlanes) || wf_load(c->order[turn].timed))) return 0;
	struct wf_req* r = &c->req[slot];
	struct wf_qp* q = &v->qp[lane];
	struct wf_lane* l = &c->lanes[lane];
	uint32_t size = wf_get(r->e[0].size);
	uint64_t seq = wf_get(r->seq);
	if (!size || size > wf_get(v->single) || wf_get(v->shares) || wf_get(r->next) != WF_NONE || !wf_room(l, q))
		return 0;
	struct wf_mr* mr = wf_mr_of(wf_get(r->e[0].mr));
	struct wf_cts_line* line = &c->ring[wf_get(r->line) % WF_LINES];
	int carried = size <= wf_get(q->inline_size) && wf_get(mr->kind) == WF_MEM_HOST;
	struct ibv_sge sge = {.addr = wf_get(r->e[0].data), .length = size,
		.lkey = carried ? 0 : wf_get(mr->key[wf_get(q->device)].lkey)};
	struct ibv_send_wr wr; /* what a WRITE does not read stays as it is */
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr.imm_data = htonl((uint32_t)(seq & 4095) << 20);
	wr.send_flags = carried ? IBV_SEND_INLINE : 0;
	wr.wr.rdma.remote_addr = wf_get(line->addr);
	wr.wr.rdma.rkey = wf_get(line->rkey[wf_get(q->peer_device)]);
	wf_put(r->parts, 1u);
	wf_put(v->turn, turn + 1 < wf_load(c->places) ? turn + 1 : 0);
	wf_put(c->queue_head, head + 1);
	wf_number(v, l, q, &wr, WF_WR_DATA, slot, 1);
	return wf_post(l, q, &wr, 1) < 0 ? -1 : 1;
}

/* Posts from the comm's queue, as far as the send queues have room. */
static int wf_verbs_data(struct wf_comm* c, struct wf_verbs* v) {
	uint32_t head, tail = wf_get(c->queue_tail);
	while ((head = wf_get(c->queue_head)) != tail) {
		int one = wf_single(c, v, head);
		if (wf_unlikely(one <= 0)) return one ? one : wf_verbs_groups(c, v);
	}
	return 0;
}

int wf_verbs_send(struct wf_comm* c, struct wf_lane* l) {
	(void)l;
	if (wf_get(c->kind) == WF_KIND_SEND) return wf_verbs_data(c, wf_verbs_of(c));
	return wf_verbs_reads(c, wf_verbs_of(c)) < 0 ? -1 : 0;
}
