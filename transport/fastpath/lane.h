/* lane.h: what the verbs lanes of a comm are made of, and what they keep in the slab. Objects of libibverbs travel
 * as integers; the core owns them. */
#ifndef WEFT_LANE_H
#define WEFT_LANE_H

#include "fastpath.h"

#define WF_BATCH 16 /* completions in one poll, work requests in one post */

struct wf_verbs;
/* The plan of the first lanes, before the comm is opened; or, gate held, of more of them. 0, ECANCELED (not open),
 * or errno of ibv_post_recv. */
int wf_verbs_attach(struct wf_comm* comm, const struct wf_verbs* plan);
int wf_verbs_flush_by(struct wf_comm* comm, uint32_t device, uint64_t qp, uint32_t depth);
void wf_verbs_detach(struct wf_comm* comm);                                  /* after it is closed, its QPs gone */
/* after it is closed: receives that are not posted */
uint32_t wf_verbs_due(struct wf_comm* comm, uint32_t lane);
/* gate held: takes in what the CQs have; 1: a flush failed */
int wf_verbs_drain(struct wf_comm* comm, struct wf_fault* read);

/* The kind in a wr_id: kind 4 | lane (READ: WF_LANES + device) 6 | epoch 8 | slot 16 | number 30. DATA and
 * HEARD end a share, of which a profiler hears with HEARD; PART does not. */
enum wf_wr_kind { WF_WR_DATA = 1, WF_WR_CTS = 2, WF_WR_READ = 3, WF_WR_RECV = 4, WF_WR_PART = 5, WF_WR_HEARD = 6 };

/* The kind in an immediate: seq mod 4096 12 | shares - 1 5 | share 5 | kind 2 | 0 8. */
enum wf_imm_kind { WF_IMM_DATA = 0, WF_IMM_RECORD = 1 };

/* The sizes of a group, on the line of its first CTS: the sender's ring holds the CTS, the receiver's the record, so
 * neither lies over the other. */
struct wf_record {
	uint64_t seq;
	uint32_t n, size[WF_GROUP];
};
_Static_assert(sizeof(struct wf_record) <= sizeof(struct wf_cts_line), "a record lies on one line");

/* The record on a line: the sender's in its out, the receiver's in its ring. */
static inline struct wf_record* wf_record_on(struct wf_cts_line* line) { return (struct wf_record*)(void*)line; }

/* One queue pair. The first words are the core's, the others begin as 0. written by: owner */
struct wf_qp {
	uint64_t qp;     /* struct ibv_qp* */
	uint64_t id;     /* lane and epoch, as in a wr_id */
	uint32_t device, peer_device;
	uint32_t depth, inline_size, most; /* of its send queue, and bytes of one request */
	uint32_t due;    /* receives to post again */
	uint32_t silent; /* requests posted since the last signaled one */
	uint32_t mark;   /* request whose completion ends the measure at hand */
	uint64_t sent;   /* bytes posted whose time is taken */
	uint64_t base;   /* of these, known to be complete; equal: no measure is at hand, and nobody reads the clock */
	/* line 1, for measures alone */
	uint64_t goal;   /* of these, complete with the mark */
	uint64_t since;  /* when the measure began */
	/* bytes of a message of one share whose time is taken. Nobody counts those of the messages ahead, nor of the
	 * ones posted until it was complete: they are taken to be as many. 0: several shares, or seen already */
	uint64_t each;
	uint64_t pad[5];
};

/* One share of the group at the head of the queue. written by: owner */
struct wf_part {
	uint32_t entry, offset; /* what comes next of it */
	uint32_t cut;           /* where it begins in a message, in 65536ths */
};

/* How many lanes carry groups, from one on: the CTS of those before may lack keys that the new lanes need. */
struct wf_more {
	uint64_t from;
	uint32_t lanes, width, single, pad;
};

/* What a comm has of one local device. The owner keeps open and reads, which begin as 0. */
struct wf_device {
	uint64_t cq;     /* struct ibv_cq*; 0: no lane is on it */
	uint64_t flush;  /* struct ibv_qp*, connected to itself; 0: none yet */
	uint32_t lkey;   /* of the slab's range */
	uint32_t open;   /* signaled sends and reads that are not complete */
	uint32_t reads;  /* of those, reads */
};

/* What the lanes of a comm share, in its area: the plan, as the core made it, and what the owner keeps, which begins
 * as 0. Line 1 has what most messages need of both. */
struct wf_verbs {
	uint64_t peer;                 /* address of the peer's ring */
	uint32_t peer_key[WF_DEVICES]; /* of the peer's range, per its device */
	uint32_t flushes /* devices whose data must be flushed, a bit each */, flush_depth, flush_always;
	uint32_t stripe_min, ar_threshold;
	uint32_t pad;

	uint32_t devices;
	uint32_t spare; /* groups of receives for which there are entries in every queue, whatever is due */
	/* written by: owner */
	uint32_t turn;   /* place in the order of the next group of one */
	uint32_t single; /* a message of at most as many bytes, alone in its group, is one request */
	uint32_t shares; /* of the group at the head of the queue; 0: not begun */
	uint32_t lane;   /* the first that carries it */
	uint32_t width;  /* lanes of a group that several share */
	uint32_t rotor;  /* first lane of the next group of several shares */
	struct wf_device device[WF_DEVICES];

	struct wf_more next; /* the plan's: lanes that are attached and carry nothing yet; its lanes 0: none */
	uint64_t pad1;
	struct wf_qp qp[WF_LANES];

	/* the group at the head of the queue, once it is begun and is no single request */
	uint32_t n, plain, heard;
	uint32_t todo;  /* a bit per share that is not wholly posted */
	uint32_t timed; /* 1: its lanes take the time */
	struct wf_part part[WF_LANES];
};

#endif
