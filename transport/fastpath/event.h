/* event.h: net events: what the host's profiler hears of requests, from table v10 on, through the callback that init
 * was given. All of it runs inside the gate, on the host's thread, and is cold: who has no callback pays a test of
 * wf_comm.events.
 *
 * NCCL 2.26 takes an event's parent from the step that it is about to begin, so an event that isend or irecv starts
 * has the right one, and one that starts later may not; and it takes whatever is no start for a stop. Of table v10 the
 * callback comes through plugin/host.c, because of 2.27. */
#ifndef WEFT_EVENT_H
#define WEFT_EVENT_H

#include "exec.h"

#include "nccl/profiler_net.h"

/* The descriptors of NCCL's own networks. They live as long as the call. */
union wf_event {
	ncclProfilerNetIbDescr_v1_t ib;
	ncclProfilerNetSockDescr_v1_t sock;
};

/* Starts event i of a request under the handle that the host gave for that entry, if it gave one. */
WF_HIDDEN WF_COLD void wf_event_start(struct wf_comm* c, uint32_t slot, uint32_t i, uint32_t entry, int64_t id,
	union wf_event* what);
/* Stops it, if a profiler has it; what: with its last word, or NULL. */
WF_HIDDEN WF_COLD void wf_event_stop(struct wf_comm* c, uint32_t slot, uint32_t i, int64_t id, union wf_event* what);
#endif
