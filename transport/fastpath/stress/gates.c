/* gates.c: what a call does when the gate it meets is another comm's by then, stays held, or was its thread's before that ended.
 * Every step is taken on purpose: no luck decides.  gates */
#include "harness.h"

#include <pthread.h>

static void nothing(void) {}
static void (*before_entry)(void) = nothing; /* between the lookup of a comm and the entry of its gate */

static int enter_later(struct wf_thread* t, struct wf_comm* c) {
	before_entry();
	return wf_enter(t, c);
}
#define wf_enter enter_later /* in the calls that exec.h makes, below */
#include "../exec.h"
#undef wf_enter

static uint32_t faults[WF_FAULT_POST + 1];

static int fault(uint64_t cookie, const struct wf_fault* f) {
	faults[f->kind]++;
	return cookie ? 6 : 3;
}
static const struct wf_upcalls upcalls = {.fault = fault};

static int fds[2];

static struct wf_comm* opened(uint32_t kind, void** h) {
	struct wf_comm* c = comm_over(kind, fds, 1, &upcalls, 1);
	*h = (void*)(uintptr_t)wf_comm_open(c);
	return c;
}

static void closed(struct wf_comm* c) {
	hold(c);
	wf_comm_close(c);
	wf_hold_end(c);
	wf_comm_free(c);
}

/* The slab is closed, freed and opened again while a call is on its way in. */
static struct wf_comm* slab;
static void* next;
static int next_code;

static void reopen(void) {
	before_entry = nothing;
	closed(slab);
	CHECK(opened(WF_KIND_SEND, &next) == slab, "the slab was not recycled");
	if (next_code) wf_comm_fail(slab, wf_get(slab->gen), next_code);
}

static void reuse(void) {
	for (next_code = 0; next_code < 10; next_code += 9) {
		void *h, *request = (void*)1;
		int rc = 0;
		slab = opened(WF_KIND_SEND, &h);
		before_entry = reopen;
		struct wf_comm* c = wf_begin_slowly("isend", WF_KIND_SEND, h, &request, &rc);
		CHECK(!c && rc == 3 && !request, "a call on a closed comm got into the gate of the next: code %d", rc);
		CHECK(!wf_get(wf_self->in_call), "the gate was not left");
		rc = 0;
		CHECK(wf_begin("isend", WF_KIND_SEND, next, &request, &rc) == (next_code ? NULL : slab) && rc == next_code, "the next comm: code %d", rc);
		wf_leave(wf_self);
		closed(slab);
	}
}

int main(void) {
	tcp_pair(fds);
	alarm(60);
	reuse();
	printf("ok reuse\n");
	return 0;
}
