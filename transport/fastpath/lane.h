/* lane.h: what the verbs lanes of a comm are made of, and what they keep in the slab. Objects of libibverbs travel as integers;
 * the core owns them. */
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
	uint32_t lanes, devices, flushes /* queue pairs in flush_qp */, flush_depth, flush_always;
	uint32_t width, stripe_min, ar_threshold;
	uint32_t lkey[WF_DEVICES], rkey[WF_DEVICES]; /* of the slab's range, per local device */
	uint32_t peer_key[WF_DEVICES];               /* of the peer's range, per its device */
};

int wf_verbs_attach(struct wf_comm* comm, const struct wf_verbs_plan* plan); /* before the comm is opened, or gate held and more lanes: EAGAIN: later; 0, or errno of ibv_post_recv */
void wf_verbs_detach(struct wf_comm* comm);                                  /* after it is closed, its QPs gone */
void wf_verbs_drain(struct wf_comm* comm);                                   /* gate held: takes in what the CQs have */

/* The kind in a wr_id: kind 4 | lane (READ: device) 6 | epoch 8 | slot 16 | number 30. DATA ends a share, PART does not. */
enum wf_wr_kind { WF_WR_DATA = 1, WF_WR_CTS = 2, WF_WR_READ = 3, WF_WR_RECV = 4, WF_WR_PART = 5 };

/* The kind in an immediate: seq mod 4096 12 | shares - 1 5 | share 5 | kind 2 | 0 8. */
enum wf_imm_kind { WF_IMM_DATA = 0, WF_IMM_RECORD = 1 };

/* The sizes of a group, on the line of its first CTS. */
struct wf_record {
	uint64_t seq;
	uint32_t n, size[WF_GROUP];
};

/* One queue pair. written by: owner */
struct wf_qp {
	uint64_t qp;
	uint32_t device, peer_device, depth, inline_size, most;
	uint32_t silent; /* requests posted since the last signaled one */
	uint32_t due;    /* receives to post again */
	uint32_t pad;
	uint64_t id;     /* lane and epoch, as in a wr_id */
};

/* What the lanes of a comm share, in its area. written by: owner */
struct wf_verbs {
	uint64_t cq[WF_DEVICES], flush[WF_DEVICES];
	uint64_t peer;
	uint32_t devices, flushes, flush_depth, flush_always, width, stripe_min, ar_threshold;
	uint32_t rotor;              /* first lane of the next group */
	uint32_t open[WF_DEVICES];   /* signaled sends and reads that are not complete */
	uint32_t reads[WF_DEVICES];  /* of those, reads */
	uint32_t lkey[WF_DEVICES], rkey[WF_DEVICES], peer_key[WF_DEVICES];
	/* the group at the head of tx; shares 0: not begun */
	uint32_t shares, share, entry, offset, lane, n, plain, total;
	uint32_t single; /* a message of at most as many bytes, alone in its group, is one request */
	uint32_t spare;  /* groups of receives for which there are entries in every queue, whatever is due */
	struct wf_qp qp[WF_LANES];
};

#endif
