/* count.c: see count.h. The receives of a group are a message each, and all as late as the group. */
#include "count.h"

#include "meter.h"

static struct weft_meter_place* wf_place_of(struct wf_comm* c) {
	return (struct weft_meter_place*)(uintptr_t)wf_load(c->meter);
}

void wf_count_start(struct wf_comm* c, uint32_t slot) {
	struct weft_meter_place* p = wf_place_of(c);
	uint64_t now = p ? wf_clock() : 0;
	wf_put(c->req_events[slot].began, now);
	if (p) weft_meter_begin(p, wf_get(c->req[slot].n), now);
}

void wf_count_end(struct wf_comm* c, uint32_t slot, uint32_t failed) {
	struct weft_meter_place* p = wf_place_of(c);
	struct wf_req* r = &c->req[slot];
	uint64_t bytes = 0, began = wf_get(c->req_events[slot].began);
	if (!p || !began) return;
	wf_put(c->req_events[slot].began, (uint64_t)0);
	wf_put(p->lanes, wf_direct(c) ? wf_get(c->nlanes) : wf_get(c->lanes[0].streams));
	if (failed) {
		weft_meter_fail(p, wf_get(r->n));
		return;
	}
	for (uint32_t i = 0; i < wf_get(r->n); i++) bytes += wf_get(r->e[i].size);
	weft_meter_end(p, wf_get(r->n), bytes, wf_clock() - began);
}

void wf_count_wait(struct wf_comm* c) {
	struct weft_meter_place* p = wf_place_of(c);
	if (wf_get(c->outstanding) >= WF_REQUESTS) return; /* it waits for a slot */
	if (p && !weft_meter_waiting(p)) weft_meter_wait(p, wf_clock());
}

void wf_count_lane(struct wf_comm* c, uint32_t lane, uint64_t bytes) {
	struct weft_meter_place* p = wf_place_of(c);
	if (p) weft_meter_lane(p, lane, bytes);
}
