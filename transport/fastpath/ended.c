/* ended.c: isend and irecv on a comm that has ended. NCCL's own networks take what is posted after the peer has
 * gone, and have test tell of it; hosts count on that. So here too: the request stands for nothing, no lane has it,
 * and its test returns the code of the first cause. What is wrong with the call itself is told at once; its memory
 * is not looked at, which the host may have deregistered meanwhile, as an abort does. iflush tells at once: from it,
 * no request means that nothing is to be flushed. */
#include "exec.h"

/* Outside the gate. code is what the call returns if it is wrong itself, or if all requests are in use. */
int wf_ended(int code, const char* call, uint32_t kind, void* comm, int n, const size_t* sizes, void** request) {
	struct wf_thread* t = wf_self;
	uint64_t h = (uint64_t)(uintptr_t)comm;
	struct wf_comm* c = wf_comm_lookup(h);
	if (!t || !c || wf_handle_kind(h) != kind) return code;
	if (!wf_enter(t, c)) return 0; /* try again */
	uint32_t slot;
	int ended = wf_comm_lookup(h) == c && (uint32_t)wf_load(c->error); /* or the slab is another comm's by now */
	for (int i = 0; ended && i < n; i++)
		if (sizes[i] > WF_SIZE_MAX) {
			wf_raise(WF_FAULT_ARGUMENT, "size above 2^31-1", 0, 0, 0, sizes[i]);
			return wf_leave_fault(t, c, call);
		}
	struct wf_req* r = ended ? wf_take(c, &slot, WF_REQUESTS) : NULL;
	if (r) {
		wf_put(r->n, 0u);
		wf_put(r->left, 0u);
		wf_put(r->state, (uint32_t)WF_REQ_POSTED);
		*request = wf_request(c, r, slot);
		wf_raise(WF_FAULT_ENDED, call, 0, 0, 0, 0);
		wf_leave_fault(t, c, call); /* test tells */
		return 0;
	}
	wf_leave(t);
	return code;
}
