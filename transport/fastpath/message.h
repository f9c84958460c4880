/* message.h: what the recorder (transport/record) hears of requests: their begin and their end. It hears of them on
 * the way that the host's profiler does, while the comm's events is not 0; a comm whose host wants none has
 * wf_unwanted there, so that who records nothing pays nothing. */
#ifndef WEFT_MESSAGE_H
#define WEFT_MESSAGE_H

#include "exec.h"

#include "nccl/profiler_net.h"

/* A callback for net events that begins none. */
WF_HIDDEN WF_COLD ncclResult_t wf_unwanted(void** event, int type, void* parent, int64_t id, void* what);
WF_HIDDEN WF_COLD void wf_message_start(struct wf_comm* c, uint32_t slot);
/* Once a message, whoever says so again. */
WF_HIDDEN WF_COLD void wf_message_end(struct wf_comm* c, uint32_t slot);
/* What the host's profiler is about to hear belongs to that message; slot WF_NONE: to none any more. */
WF_HIDDEN WF_COLD void wf_message_causes(struct wf_comm* c, uint32_t slot, uint32_t i);
#endif
