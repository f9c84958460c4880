/* coalesce.c: small sends of a host that has one under way at a time. A packet each costs more than all else, and a
 * second one to join only comes when the first is done. So where the core finds that such sends follow one another
 * fast (coalescer.go), each is copied, is done, and waits for company. They leave when there are WF_GATHER, with any
 * send that is not of these, when the host calls something else in vain, and by the core when nothing of it happens
 * for a while. What precedes a close or an exit still leaves, if the peer reads; what a process has not written when
 * it is killed does not. */
#include "frame.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* Writes them to stream 0. 0: they are out; 1: some are left; -1: errno. */
int wf_coalesced_write(struct wf_comm* c) {
	uint32_t at = wf_get(c->coalesced_at), end = wf_get(c->coalesced_end);
	if (at == end) return 0;
	ssize_t k = send((int)wf_get(wf_stream_at(&c->lanes[0], 0)->fd), (char*)c->stash + at, end - at,
		MSG_NOSIGNAL | MSG_DONTWAIT);
	if (k < 0) return wf_not_now(errno) ? 1 : -1;
	wf_put(c->coalesced_at, at + (uint32_t)k);
	if (at + k < end) return 1;
	wf_put(c->coalesced, 0u);
	wf_put(c->coalesced_at, 0u);
	wf_put(c->coalesced_end, 0u);
	wf_put(c->unsent, wf_get(c->unsent) - 1);
	return 0;
}

/* The only send in the queue may join them: nothing of it has left, and all of them together are not too large. */
static int wf_joins(struct wf_comm* c, uint32_t n, uint32_t bytes) {
	uint32_t head = wf_get(c->queue_head), size = wf_get(c->req[wf_get(c->queue[head % WF_REQUESTS])].e[0].size);
	int alone = wf_get(c->queue_tail) - head == 1 && wf_get(c->unsent) == 1 + (n > 0);
	return alone && n < WF_GATHER && wf_may_wait(c, head, WF_COALESCE) && bytes + WF_FRAME + size <= WF_TOGETHER;
}

static void wf_join(struct wf_comm* c, struct wf_lane* l) {
	struct wf_stream* s = wf_stream_at(l, 0);
	struct wf_piece p[WF_GATHER];
	uint32_t n = wf_gather(c, l, s, p), end = wf_get(c->coalesced_end), len = p[0].head.frame.len;
	memcpy((char*)c->stash + end, p[0].head.byte, WF_FRAME);
	if (len) memcpy((char*)c->stash + end + WF_FRAME, (void*)(uintptr_t)p[0].data, len);
	wf_put(c->coalesced_end, end + WF_FRAME + len);
	if (!wf_get(c->coalesced)) wf_put(c->unsent, wf_get(c->unsent) + 1);
	wf_put(c->coalesced, wf_get(c->coalesced) + 1);
	wf_written(c, s, p, n, WF_FRAME + len);
	wf_put(c->lazy, WF_SOON);
	wf_list(wf_self, c); /* the host may ask for anything but this comm's sends */
}

/* A visit of lane 0's streams begins. 1: it ends here: the send has joined, or those before it could not leave; 0: all
 * before it have left; -1: errno. */
int wf_coalesce(struct wf_comm* c, struct wf_lane* l) {
	int on = wf_get(c->coalesce) && wf_get(wf_self->idle) == wf_get(c->idle), rc = 0;
	if (!on || !wf_joins(c, wf_get(c->coalesced), wf_get(c->coalesced_end))) rc = wf_coalesced_write(c);
	if (rc > 0) wf_list(wf_self, c);
	if (rc || !on || !wf_joins(c, wf_get(c->coalesced), wf_get(c->coalesced_end))) return rc;
	wf_join(c, l);
	return wf_get(c->coalesced) < WF_GATHER || wf_coalesced_write(c) >= 0 ? 1 : -1;
}

/* A small send leaves by itself, while only one is under way. Of a long streak the core hears. */
void wf_streak(struct wf_comm* c) {
	uint32_t n = wf_get(c->streak) + 1;
	wf_put(c->streak, n);
	if (n < wf_get(c->streak_most)) return;
	wf_put(c->streak, 0u);
	wf_put(wf_self->wants, wf_get(c->cookie));
	wf_list(wf_self, c); /* flushing the list tells */
}
