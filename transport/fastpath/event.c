/* event.c: see event.h. What the callback returns is not looked at: a profiler's trouble is not the connection's.
 *
 * NCCL gives every plugin its callback, whether there is a profiler or not, and an event that nobody wants gets no
 * handle. After some in a row the comm takes its callback away, and its messages go the short way; once a second the
 * core gives it back. */
#include "event.h"
#include "message.h"

#include "record.h"

static void wf_hears(struct wf_comm* c, int on) {
	const struct wf_lane_ops* ops = wf_ops(&c->lanes[0]);
	wf_put(c->heard, (uint32_t)on);
	if (ops->hears) ops->hears(c, on);
}

static void wf_unheard(struct wf_comm* c) {
	uint32_t unheard = wf_get(c->unheard) + 1;
	wf_put(c->unheard, unheard);
	if (unheard < WF_UNHEARD || wf_get(c->open_events)) return;
	wf_put(c->unheard, 0u);
	wf_put(c->events, wf_comm_hears(0));
	if (!wf_get(c->events)) wf_hears(c, 0);
}

static int wf_event_is(struct wf_comm* c, uint32_t slot) {
	return wf_get(c->req_events[slot].gen) == wf_get(c->req[slot].gen);
}

void wf_event_start(struct wf_comm* c, uint32_t slot, uint32_t i, uint32_t entry, int64_t id, union wf_event* what) {
	struct wf_req_events* e = &c->req_events[slot];
	ncclProfilerCallback_t call = (ncclProfilerCallback_t)(uintptr_t)wf_get(c->events);
	void *event = NULL, *parent = (void*)(uintptr_t)wf_get(e->phandle[entry]);
	if (!call || !wf_event_is(c, slot) || !parent || wf_get(e->event[i])) return; /* NCCL would follow parent */
	if (call == wf_unwanted) return;
	wf_message_causes(c, slot, i);
	call(&event, ncclProfilerNetEventStart, parent, id, what);
	wf_message_causes(c, WF_NONE, 0);
	if (!event) {
		wf_unheard(c);
		return;
	}
	wf_put(c->unheard, 0u);
	wf_put(c->open_events, wf_get(c->open_events) + 1);
	wf_put(e->event[i], (uint64_t)(uintptr_t)event);
}

void wf_event_stop(struct wf_comm* c, uint32_t slot, uint32_t i, int64_t id, union wf_event* what) {
	struct wf_req_events* e = &c->req_events[slot];
	ncclProfilerCallback_t call = (ncclProfilerCallback_t)(uintptr_t)wf_get(c->events);
	void* event = (void*)(uintptr_t)wf_get(e->event[i]);
	void* parent = (void*)(uintptr_t)wf_get(e->phandle[wf_get(c->kind) == WF_KIND_RECV ? i : 0]);
	int type = what ? ncclProfilerNetEventUpdateAndStop : ncclProfilerNetEventStop;
	if (!event || !wf_event_is(c, slot)) return; /* no profiler, or it did not want that one */
	wf_put(e->event[i], (uint64_t)0);
	wf_put(c->open_events, wf_get(c->open_events) - 1);
	call(&event, type, parent, id, what);
}

/* What a provider says of the whole of a request. */
void wf_events_start(struct wf_comm* c, uint32_t slot, void** phandles) {
	const struct wf_lane_ops* ops = wf_ops(&c->lanes[0]);
	struct wf_req* r = &c->req[slot];
	struct wf_req_events* e = &c->req_events[slot];
	int wanted = wf_get(c->events) != (uint64_t)(uintptr_t)wf_unwanted;
	if (!wf_get(c->heard)) wf_hears(c, 1);
	wf_put(e->gen, wf_get(r->gen));
	wf_message_start(c, slot);
	for (uint32_t i = 0; i < WF_GROUP; i++) {
		union wf_event what;
		int there = wanted && phandles && i < wf_get(r->n);
		wf_put(e->phandle[i], there ? (uint64_t)(uintptr_t)phandles[i] : 0);
		wf_put(e->event[i], (uint64_t)0);
		int64_t id = there && ops->describe ? ops->describe(c, r, i, &what) : 0;
		if (id) wf_event_start(c, slot, i, i, id, &what);
	}
}

/* Stops all events that the request still has; of a receive that is done they also tell the size. */
void wf_events_stop(struct wf_comm* c, uint32_t slot) {
	const struct wf_lane_ops* ops = wf_ops(&c->lanes[0]);
	struct wf_req* r = &c->req[slot];
	int told = wf_get(c->kind) == WF_KIND_RECV && wf_get(r->state) == WF_REQ_DONE;
	for (uint32_t i = 0; i < WF_GROUP && wf_event_is(c, slot); i++) {
		union wf_event what;
		if (!wf_get(c->req_events[slot].event[i])) continue;
		int64_t id = told ? ops->describe(c, r, i, &what) : 0;
		wf_event_stop(c, slot, i, id, id ? &what : NULL);
	}
	wf_message_end(c, slot);
}
