/* message.c: see message.h. The fields' places are told in transport/record/format. */
#include "message.h"
#include "count.h"

#include "meter.h"
#include "record.h"

#define FAILED 1u

ncclResult_t wf_unwanted(void** event, int type, void* parent, int64_t id, void* what) {
	(void)event;
	(void)type;
	(void)parent;
	(void)id;
	(void)what;
	return ncclSuccess;
}

uint64_t wf_comm_hears(uint64_t callback) {
	int heard = weft_recording() || weft_metering();
	return callback || !heard ? callback : (uint64_t)(uintptr_t)wf_unwanted;
}

static uint64_t wf_link(struct wf_comm* c) { return wf_handle(wf_get(c->kind), wf_get(c->gen), wf_get(c->index), 0); }

/* One word of each entry of a group, two in a word of the record. */
static void wf_each(struct weft_more* more, struct wf_req* r, int tags) {
	*more = (struct weft_more){.kind = WEFT_RECORD_MORE};
	for (uint32_t i = 0; i < wf_get(r->n); i++) {
		uint32_t value = tags ? (uint32_t)wf_get(r->e[i].tag) : wf_get(r->e[i].size);
		more->word[i / 2] |= (uint64_t)value << i % 2 * 32;
	}
}

void wf_message_start(struct wf_comm* c, uint32_t slot) {
	uint64_t at, bytes = 0;
	struct wf_req* r = &c->req[slot];
	uint32_t n = wf_get(r->n), recv = wf_get(c->kind) == WF_KIND_RECV, records = n > 1 ? 2 : 1;
	struct weft_record* record = weft_record_take(records, &at);
	wf_count_start(c, slot);
	wf_put(c->req_events[slot].message, record ? at : 0);
	if (!record) return;
	for (uint32_t i = 0; i < n; i++) bytes += recv ? wf_get(r->e[i].cap) : wf_get(r->e[i].size);
	*record = (struct weft_record){.kind = WEFT_RECORD_MESSAGE, .time = weft_record_clock(), .id = at,
		.parent = wf_link(c), .rank = recv ? 0 : (int32_t)wf_get(c->vain), .b = bytes,
		.flags = (recv ? WF_KIND_RECV : WF_KIND_SEND) | n << 8,
		.a = wf_get(r->entry) == WF_AHEAD && !recv ? 0 : wf_get(r->seq), .c = (uint32_t)wf_get(r->e[0].tag)};
	if (n > 1) wf_each((struct weft_more*)(void*)(record + 1), r, 1);
	weft_record_done(record, records, at);
}

void wf_message_end(struct wf_comm* c, uint32_t slot) {
	uint64_t at, bytes = 0, message = wf_get(c->req_events[slot].message);
	struct wf_req* r = &c->req[slot];
	if (wf_get(c->req_events[slot].gen) != wf_get(r->gen)) return;
	uint32_t failed = (uint32_t)wf_load(c->error) || wf_get(r->state) == WF_REQ_REFUSED;
	wf_count_end(c, slot, failed);
	if (!message) return;
	uint32_t n = wf_get(r->n), recv = wf_get(c->kind) == WF_KIND_RECV, ahead = !recv && wf_get(r->entry) == WF_AHEAD;
	struct weft_record* record = weft_record_take(n > 1 ? 2 : 1, &at);
	wf_put(c->req_events[slot].message, (uint64_t)0);
	if (!record) return;
	for (uint32_t i = 0; i < n && !failed; i++) bytes += wf_get(r->e[i].size);
	*record = (struct weft_record){.kind = WEFT_RECORD_MESSAGE_END, .time = weft_record_clock(), .id = message,
		.flags = failed ? FAILED : 0, .a = ahead ? 0 : wf_get(r->seq), .b = bytes,
		.c = ahead ? WF_AHEAD : recv ? 0 : wf_get(r->entry)};
	if (n > 1) wf_each((struct weft_more*)(void*)(record + 1), r, 0);
	weft_record_done(record, n > 1 ? 2 : 1, at);
}

void wf_message_causes(struct wf_comm* c, uint32_t slot, uint32_t i) {
	struct weft_cause none = {0};
	if (!weft_recording()) return;
	if (slot == WF_NONE) weft_record_causes(none);
	else weft_record_causes((struct weft_cause){wf_link(c), wf_get(c->req_events[slot].message), i});
}
