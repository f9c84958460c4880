/* count.h: what a process counts of its messages (transport/meter). It hears of them on the way that the recorder
 * does, while the comm's events is not 0. */
#ifndef WEFT_COUNT_H
#define WEFT_COUNT_H

#include "exec.h"

WF_HIDDEN WF_COLD void wf_count_start(struct wf_comm* c, uint32_t slot);
/* Once a message, whoever says so again. */
WF_HIDDEN WF_COLD void wf_count_end(struct wf_comm* c, uint32_t slot, uint32_t failed);
/* A send finds no receive, or no slot, of which nothing is said. */
WF_HIDDEN WF_COLD void wf_count_wait(struct wf_comm* c);
WF_HIDDEN WF_COLD void wf_count_lane(struct wf_comm* c, uint32_t lane, uint64_t bytes);
#endif
