/* fastpath.h: the calls of the fast path, the C executor that runs a connection's plan. Plain C11, because weft/gen
 * reads it too. What it keeps in memory is in layout.h. */
#ifndef WEFT_FASTPATH_H
#define WEFT_FASTPATH_H

#include <stddef.h>
#include <stdint.h>

#include "layout.h"

/* Calls from C into the core. A const table of the provider's package; always called outside the gate. */
struct wf_upcalls {
	/* Logs once, records the cause and returns the result code for the host. comm_cookie is the comm's, or 0.
	 * PEER_CLOSED, SOCKET, PROTOCOL, INTERNAL, COMPLETION and POST end the comm: every later call on it returns the
	 * returned code. ENDED: it has ended, and its cause may not have been said. */
	int (*fault)(uint64_t comm_cookie, const struct wf_fault* fault);
	/* The comm's lanes want something of their Go side. Queue pairs: a flush waits for some that the comm does not have
	 * yet. Streams: small sends follow one another, one at a time. Waits for no peer and no card. */
	void (*wants)(uint64_t comm_cookie);
};

/* Where a handle has the listen's id and the connecting side's state. */
enum { WF_HANDLE_LISTEN = 24, WF_HANDLE_STATE = 32 };

struct wf_comm;
struct wf_lane;
struct wf_req;
union wf_event;

/* What a lane can do. A const table of the provider's package. Each call runs inside the gate, is bounded, never
 * blocks, and returns a negative number after wf_raise. */
struct wf_lane_ops {
	int (*send)(struct wf_comm* comm, struct wf_lane* lane);     /* start or continue posted sends, piecewise */
	int (*progress)(struct wf_comm* comm, struct wf_lane* lane); /* complete what can be completed, take CTS in */
	/* push the CTS of [cts_out, next_seq); 0: drained, > 0: some left */
	int (*flush)(struct wf_comm* comm, struct wf_lane* lane);
	/* iflush; > 0: it waits for queue pairs; NULL: nothing to do, ever */
	int (*land)(struct wf_comm* comm, void* data, uint64_t size, void* mhandle, void** request);
	/* what a profiler hears of an entry, as NCCL's own network of that kind says it: fills *event and returns its
	 * id; 0: nothing, or the lanes say it themselves. Lane 0's serves all */
	int64_t (*describe)(struct wf_comm* comm, struct wf_req* request, uint32_t entry, union wf_event* event);
	/* a profiler may hear of messages from now on, or of none; NULL: all the same. Lane 0's serves all */
	void (*hears)(struct wf_comm* comm, int on);
};

/* ---- what a host calls, through the versioned tables. The shims have seen to it that no pointer is NULL, but for
 * phandles and test's sizes, and that n is 1 to WF_GROUP. ---- */
int weft_isend(void* sendComm, void* data, size_t size, int tag, void* mhandle, void* phandle, void** request);
int weft_irecv(void* recvComm, int n, void** data, size_t* sizes, int* tags, void** mhandles, void** phandles,
	void** request);
int weft_iflush(void* recvComm, int n, void** data, int* sizes, void** mhandles, void** request);
int weft_test(void* request, int* done, int* sizes);
/* reports a pointer that must not be NULL; returns the code for the host */
int weft_null(const char* function, const char* name);
int weft_misuse(const char* function, const char* what, uint64_t got); /* the same for any other argument */
/* 1: nothing has come yet of the connect whose state the handle has, or to the listen: *comm is NULL, and Go need not
 * be asked. A thread that does nothing else may sleep here for 0.2 ms (rest.c) */
int weft_connect_waits(const void* handle, void** comm);
int weft_accept_waits(uintptr_t listen, void** comm);
/* Makes progress for a request, as test does. 1: it is not done; 0: it is; -1: it has failed, or only test can tell. */
int weft_test_waits(void* request);
/* 0: the key that tells of a thread's end is there; else errno: without it no comm may be opened */
int wf_thread_key_make(void);
void weft_starts(int32_t more); /* a start of Go begins, or failed: a child forked from then on cannot use weft */
int weft_forked(void); /* 0, or the code that every call must return in a forked child */

extern uint32_t weft_progress_epoch; /* grows whenever a connect or accept changed state; a futex word */

/* ---- what the core calls ---- */
void wf_set_default_upcalls(const struct wf_upcalls* upcalls); /* for faults that belong to no comm */
/* The value of wf_comm.events: the host's callback; without one, a non-zero stand-in while the recorder or the meter
 * is on, else 0. */
uint64_t wf_comm_hears(uint64_t callback);
/* NULL: errno */
struct wf_comm* wf_comm_new(uint32_t kind, uint32_t device, uint64_t cookie, const struct wf_upcalls* upcalls);
uint64_t wf_comm_open(struct wf_comm* comm); /* makes the handle valid and returns it; 0: it has no lane */
struct wf_comm* wf_comm_find(uint64_t handle);     /* NULL: stale, closed or foreign */
uint32_t wf_comm_count(void);                      /* slabs ever used */
void wf_comm_close(struct wf_comm* comm);          /* gate held: handle and requests become invalid */
void wf_comm_free(struct wf_comm* comm);           /* closed, lanes gone: gives the memory back */
int wf_comm_fail(struct wf_comm* comm, uint32_t gen, int32_t code); /* 1: this call failed it */
/* gate held; 1: it was open; 2: refused before; 0: neither */
int wf_comm_refuse(struct wf_comm* comm, uint64_t seq, int32_t code);

int wf_hold_try(struct wf_comm* comm);   /* 1: held is ours now; then wf_barrier, then wait until wf_hold_clear */
void wf_barrier(void);                   /* orders this thread against every call in progress */
/* comm (address) whose gate that thread has entered, 0: none, 1: no such thread */
uint64_t wf_inside(uint32_t thread);
int wf_hold_clear(struct wf_comm* comm); /* 1: no thread is inside the gate */
void wf_hold_end(struct wf_comm* comm);

struct wf_mr* wf_mr_at(uint32_t index);  /* entry of that number; makes the table reach that far; NULL: errno */

/* a connect (of: the listen's id on the wire) or an accept (of: 0) has nothing to say until wf_wait_end */
void wf_wait(uint64_t id, uint64_t of);
void wf_wait_end(uint64_t id, uint64_t of);
int wf_wait_asked(uint64_t id, uint64_t of); /* 1: polled since the last call */

int wf_process_init(void); /* 0, or errno: fork handler and barrier; any number of times */
int wf_track_fd(int fd);   /* close it in a forked child; 0, or errno */
void wf_untrack_fd(int fd);
/* connections that still drain: process exit waits for them, at most 2 s. written by: core */
extern uint32_t wf_reaping;
extern uint32_t wf_exiting; /* 1: the process has called exit */

/* ---- what a lane's provider calls, inside the gate ---- */
/* records a fault; returns -1 */
int wf_raise(uint32_t kind, const char* where, int err, uint64_t seq, uint64_t want, uint64_t got);
void wf_sent(struct wf_comm* comm, uint32_t slot);    /* the send's last byte was handed over */
void wf_arrived(struct wf_comm* comm, uint32_t slot); /* a frame of the group is complete */
void wf_lines_free(struct wf_comm* comm);             /* after groups are complete, or CTS are out */
/* 1: found; 0: not posted yet; -1: its group was refused */
int wf_ahead_find(struct wf_comm* comm, uint64_t seq, int32_t tag, uint32_t* slot, uint32_t* entry);
/* address for its bytes; 0: there are too many */
uint64_t wf_ahead_keep(struct wf_comm* comm, const struct wf_ahead_message* message);
void wf_ahead_kept(struct wf_comm* comm);             /* the last one's bytes are there */
/* left bytes are still to come, and may go to the receive that it has by now; returns as wf_ahead_find */
int wf_ahead_divert(struct wf_comm* comm, uint32_t left, uint32_t* slot, uint32_t* entry);
/* larger than its receive: raises a fault */
void wf_ahead_refuse(struct wf_comm* comm, uint32_t slot, uint32_t entry, uint32_t size);

#endif
