/* ahead.h: what the executor's calls ask of ahead.c. All is cold, which keeps it out of the way of queue pairs: over
 * sockets a system call costs more. */
#ifndef WEFT_AHEAD_H
#define WEFT_AHEAD_H

#include "exec.h"

WF_HIDDEN WF_COLD uint32_t wf_ahead_place(struct wf_comm* c, uint32_t size);
WF_HIDDEN WF_COLD void wf_ahead_trim(struct wf_comm* c);
WF_HIDDEN WF_COLD void wf_ahead_leave(struct wf_comm* c, uint32_t place, uint32_t size, int tag);
WF_HIDDEN WF_COLD int wf_ahead_posted(struct wf_thread* t, struct wf_comm* c, struct wf_req* r);
WF_HIDDEN WF_COLD void wf_refuse_receives(struct wf_comm* c, struct wf_req* r);

#endif
