/* flush.c: a flush reads a byte back through a queue pair that is connected to itself, behind the data that a
 * receive brought: when the read is complete, whoever looks at that memory sees the data. Which devices' data must
 * be flushed is known when their lanes are attached; the queue pairs may come later, and flushes wait for them in
 * their order. */
#include "post.h"

#include <errno.h>

/* Posts the flushes in the queue: a read on every device by which data may have come. 0; 1: a queue pair is not
 * there yet; -1: fault. */
int wf_verbs_reads(struct wf_comm* c, struct wf_verbs* v) {
	while (wf_get(c->queue_head) != wf_get(c->queue_tail)) {
		uint32_t slot = wf_get(c->queue[wf_get(c->queue_head) % WF_REQUESTS]);
		struct wf_req* r = &c->req[slot];
		for (uint32_t left; (left = wf_get(r->devices)); wf_put(r->devices, left & (left - 1))) {
			uint32_t d = (uint32_t)__builtin_ctz(left);
			struct wf_device* on = &v->device[d];
			if (!wf_get(on->flush)) return 1;
			struct wf_mr* mr = wf_mr_lookup(wf_get(r->e[0].mr));
			if (wf_get(on->reads) >= wf_get(v->flush_depth)) return 0;
			if (wf_unlikely(!mr)) return wf_raise(WF_FAULT_INTERNAL, "memory of a flush is gone", 0, 0, 0, 0);
			struct ibv_sge sge = {.addr = (uint64_t)(uintptr_t)&c->sink[d], .length = 1, .lkey = wf_get(on->lkey)};
			uint64_t id = (uint64_t)WF_WR_READ << 60 | (uint64_t)(WF_LANES + d) << 54 | (uint64_t)slot << 30;
			struct ibv_send_wr *bad, wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1,
				.opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED,
				.wr.rdma = {wf_get(r->e[0].data), wf_get(mr->key[d].rkey)}};
			struct ibv_qp* qp = wf_ibv(wf_get(on->flush));
			int rc = qp->context->ops.post_send(qp, &wr, &bad);
			if (rc) return wf_post_failed(WF_LANES + d, "ibv_post_send of a flush", rc);
			wf_put(on->reads, wf_get(on->reads) + 1);
			wf_put(on->open, wf_get(on->open) + 1);
		}
		wf_put(c->queue_head, wf_get(c->queue_head) + 1);
		wf_put(c->unsent, wf_get(c->unsent) - 1);
	}
	return 0;
}

/* What iflush does. */
int wf_verbs_land(struct wf_comm* c, void* data, uint64_t size, void* mhandle, void** request) {
	struct wf_verbs* v = wf_verbs_of(c);
	struct wf_mr* mr = wf_mr_lookup((uint64_t)(uintptr_t)mhandle);
	uint32_t slot, tail = wf_get(c->queue_tail);
	if (!wf_get(v->flushes) || (mr && wf_get(mr->kind) == WF_MEM_HOST && !wf_get(v->flush_always))) return 0;
	struct wf_req* r = tail - wf_get(c->queue_head) < WF_REQUESTS ? wf_take(c, &slot, WF_SLOTS) : NULL;
	if (!r)
		return wf_raise(WF_FAULT_ARGUMENT, "too many requests and flushes that are not tested", 0, 0, 0,
			wf_get(c->outstanding));
	if (wf_buffer(c, &r->e[0], data, &size, 0, mhandle, 0) < 0) {
		wf_give(c, slot);
		return -1;
	}
	wf_put(r->e[0].size, (uint32_t)size);
	wf_put(r->n, 1u);
	wf_put(r->left, 0u);
	wf_put(r->seq, (uint64_t)0);
	wf_put(r->devices, wf_get(v->flushes));
	wf_put(r->parts, (uint32_t)__builtin_popcount(wf_get(v->flushes)));
	wf_put(r->state, (uint32_t)WF_REQ_POSTED);
	wf_put(c->queue[tail % WF_REQUESTS], slot);
	wf_put(c->queue_tail, tail + 1);
	wf_put(c->unsent, wf_get(c->unsent) + 1);
	*request = wf_request(c, r, slot);
	return wf_verbs_reads(c, v);
}

/* Gate held: hands over a device's flush QP. 0, or errno. */
int wf_verbs_flush_by(struct wf_comm* c, uint32_t d, uint64_t qp, uint32_t depth) {
	struct wf_verbs* v = wf_verbs_of(c);
	if (wf_get(c->state) != WF_COMM_OPEN || d >= v->devices || !(v->flushes >> d & 1) || v->device[d].flush)
		return EINVAL;
	v->device[d].flush = qp;
	if (depth < v->flush_depth) v->flush_depth = depth;
	return 0;
}
