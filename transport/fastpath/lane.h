/* lane.h: what the verbs lanes of a comm are made of. Objects of libibverbs travel as integers; the core owns them. */
#ifndef WEFT_LANE_H
#define WEFT_LANE_H

#include "fastpath.h"

struct wf_verbs_lane {
	uint64_t qp, cq; /* struct ibv_qp*, struct ibv_cq* */
	uint32_t device, peer_device;
	uint32_t send_depth, recv_depth, inline_size, max_message;
};

struct wf_verbs_plan {
	struct wf_verbs_lane lane[WF_LANES];
	uint64_t flush_qp[WF_DEVICES];
	uint64_t peer; /* address of the peer's ring */
	uint32_t lanes, devices, flushes, flush_depth, flush_always;
	uint32_t width, stripe_min, ar_threshold;
	uint32_t lkey[WF_DEVICES], rkey[WF_DEVICES]; /* of the slab's range, per local device */
	uint32_t peer_key[WF_DEVICES];               /* of the peer's range, per its device */
};

int wf_verbs_attach(struct wf_comm* comm, const struct wf_verbs_plan* plan); /* before the comm is opened; 0, or errno of ibv_post_recv */
void wf_verbs_detach(struct wf_comm* comm);                                  /* after it is closed, its QPs gone */
void wf_verbs_drain(struct wf_comm* comm);                                   /* gate held: takes in what the CQs have */

#endif
