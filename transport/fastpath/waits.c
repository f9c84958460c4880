/* waits.c: connects and accepts that have nothing to say yet. A host polls each of them until it is done, a thousand in
 * turn when a thousand ranks start: such a poll is answered here, because entering Go takes five system calls. */
#include "exec.h"

#include <string.h>

#define WF_WAITS 16384u /* make bench has ten thousand at once */

struct wf_wait {
	uint64_t id; /* 0: nobody waits here */
	uint64_t of;
	uint32_t asked; /* since the core looked last. written by: any thread of the host, core */
};

/* By the id's low bits, connects and accepts apart. Where two meet the later stays, and polls of the other enter Go. */
static struct wf_wait wf_waits[2][WF_WAITS];

static struct wf_wait* wf_wait_at(uint64_t id, uint64_t of) { return &wf_waits[of != 0][id % WF_WAITS]; }

void wf_wait(uint64_t id, uint64_t of) {
	struct wf_wait* w = wf_wait_at(id, of);
	wf_store(w->id, (uint64_t)0);
	wf_store(w->of, of);
	wf_store(w->asked, 0u);
	wf_store(w->id, id);
}

void wf_wait_end(uint64_t id, uint64_t of) {
	__atomic_compare_exchange_n(&wf_wait_at(id, of)->id, &id, (uint64_t)0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

int wf_wait_asked(uint64_t id, uint64_t of) {
	struct wf_wait* w = wf_wait_at(id, of);
	return wf_load(w->id) == id && __atomic_exchange_n(&w->asked, 0u, __ATOMIC_RELAXED);
}

static int wf_waiting(uint64_t id, uint64_t of, void** comm) {
	struct wf_wait* w = wf_wait_at(id, of);
	const int vain = id && wf_load(w->id) == id && wf_load(w->of) == of;
	if (vain) {
		if (!wf_load(w->asked)) wf_store(w->asked, 1u);
		*comm = NULL;
	}
	wf_polled(vain);
	return vain;
}

int weft_connect_waits(const void* handle, void** comm) {
	uint64_t of, state;
	memcpy(&of, (const char*)handle + WF_HANDLE_LISTEN, sizeof of);
	memcpy(&state, (const char*)handle + WF_HANDLE_STATE, sizeof state);
	return wf_waiting(state, of, comm);
}

int weft_accept_waits(uintptr_t listen, void** comm) { return wf_waiting(listen, 0, comm); }
