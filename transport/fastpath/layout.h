/* layout.h: what the fast path keeps in memory, which C and Go read alike.
 *
 * Plain C11 (fixed-width integers, macros, enums, structs), because weft/gen reads it too: it makes the
 * Go view (zz_view.go) and the layout assertions from it.
 *
 * One comm is one direction of one connection and lives in one slab: 64-byte aligned, type-stable (a slab address
 * stays a slab for the life of the process), recycled with a new generation. Every word of a slab is a uint32_t or
 * uint64_t, touched in C only through __atomic_*, in Go only through sync/atomic of the same width. Who writes:
 *   core    Go, while no host call can see the slab (New, Free) or while the gate is held (everything else)
 *   any     any thread, by compare-and-swap
 *   owner   the thread that is inside the gate of this comm: its owner, or whoever holds it
 *
 * The gate. A host calls regMr, deregMr and close on another thread than isend, irecv and test. The calling thread
 * publishes the comm in its record (in_call), then reads held. A holder swaps held from 0 to 1, runs a process-wide
 * barrier (membarrier) and waits until no thread record names the comm. in_call lives in the thread's record, not in
 * the slab, so that the flush of another comm's output, or a comm that moves to another thread, needs no second lock.
 */
#ifndef WEFT_LAYOUT_H
#define WEFT_LAYOUT_H

#include <stdint.h>

#define WF_LINES 256       /* CTS lines outstanding per side */
#define WF_LINES_SPARE 7   /* absorb the overhang of a group that starts near the end of the ring */
#define WF_REQUESTS 256    /* sends or receives of a comm that have not been reported */
#define WF_SLOTS 512       /* request slots of a comm: those that receives leave free are for flushes */
/* flushes of a comm that wait for its gate: their requests have the slots from WF_SLOTS on */
#define WF_LATES 128
#define WF_GROUP 8         /* receives that one irecv may group */
#define WF_LANES 32        /* lanes of a comm */
#define WF_ORDER 128       /* places in the order in which lanes take messages */
#define WF_DEVICES 8       /* devices of a comm */
#define WF_STREAMS 64      /* streams of a comm, over all its lanes */
#define WF_STREAM_BYTES 384 /* provider memory of one stream */
#define WF_CTS_BATCH 4     /* queued CTS groups at which irecv sends them itself */
#define WF_PUSH 2          /* tests of sends for which small messages are held back, to leave together */
#define WF_CTS_LAZY 32     /* the same while messages come ahead of their CTS */
#define WF_NONE 0xffffffffu /* no slot */
#define WF_SIZE_MAX 0x7fffffffu /* largest message */
#define WF_AHEAD 0xffu /* entry of a send that left before its receive was known */
#define WF_AHEADS 256      /* of those, the most whose receives the sender does not know yet */
#define WF_STASH (512u << 10) /* bytes in which a receiver keeps them */
#define WF_UNHEARD 16u     /* events in a row that no profiler wants, before it is left alone for a while */
#define WF_MEM_HOST 1u /* pointer kind of host memory, in every table */
#define WF_GROUP_DONE 0x80000000u /* in wf_comm.group: complete, the low bits are its number of receives */

/* Opaque handles: kind 4 | generation 24 | slab 20 | slot 16, most significant first. Kinds start at 1, so that no
 * handle is 0, 1 or 2, and no handle is an address that a host could dereference by accident. */
#define WF_KIND_SHIFT 60
#define WF_GEN_SHIFT 36
#define WF_SLAB_SHIFT 16
#define WF_GEN_MASK 0xffffffu
#define WF_SLAB_MASK 0xfffffu
#define WF_SLOT_MASK 0xffffu

enum wf_kind {
	WF_KIND_SEND = 1,    /* send comm */
	WF_KIND_RECV = 2,    /* receive comm */
	WF_KIND_REQUEST = 3, /* request */
	WF_KIND_MR = 4,      /* registered memory */
};

enum wf_comm_state {
	WF_COMM_FREE = 0,   /* nobody's */
	WF_COMM_NEW = 1,    /* being set up, its handle is not valid yet */
	WF_COMM_OPEN = 2,   /* the host may call */
	WF_COMM_CLOSED = 3, /* closed; its lanes wait for the reaper */
};

enum wf_req_state {
	WF_REQ_FREE = 0,    /* not in use */
	WF_REQ_MATCHED = 1, /* a send that waits for the rest of its group */
	WF_REQ_POSTED = 2,  /* on its way */
	WF_REQ_DONE = 3,    /* complete; test reports it once */
	WF_REQ_REFUSED = 4, /* its group was refused; test reports the comm's refuse_code */
	WF_REQ_TOLD = 5,    /* refused and reported: test returns the same again, until every other slot is in use */
};

/* A message that came ahead of its receive. */
enum wf_ahead_state {
	WF_AHEAD_OVER = 0,    /* it has its receive, or nobody wants it */
	WF_AHEAD_FILLING = 1, /* its bytes are arriving */
	WF_AHEAD_WAITS = 2,   /* it waits for a receive of its tag */
};

/* Bits: why the kernel copies what it was to send from where it lies. */
enum wf_zero_copied {
	WF_ZERO_COPIED = 1,     /* it says that it did, as it always does on that path */
	WF_ZERO_NOT_PINNED = 2, /* it could not pin the pages */
};

enum wf_fault_kind {
	WF_FAULT_PEER_CLOSED = 1, /* the peer closed a stream; got = stream */
	WF_FAULT_SOCKET = 2,      /* a socket call failed: err = errno, got = stream */
	WF_FAULT_PROTOCOL = 3,    /* the peer sent what it must not: where says what, want and got the values */
	WF_FAULT_TOO_LARGE = 4,   /* send of got bytes into a receive of want: the group (seq) is refused, the comm lives */
	WF_FAULT_HANDLE = 5,      /* stale, closed or foreign comm or request: got = the value */
	WF_FAULT_ARGUMENT = 6,    /* an argument out of range: where names it */
	WF_FAULT_MR = 7,          /* memory not inside a live registration of this device: got = address, want = bytes */
	WF_FAULT_INTERNAL = 8,    /* a defect or an exhausted table of ours */
	WF_FAULT_COMPLETION = 9,  /* a work request failed: err = enum ibv_wc_status, got = vendor's code, want = wr_id */
	WF_FAULT_POST = 10,       /* ibv_post_* failed: err = errno, where = which */
	/* the gate did not get free for want seconds: a thread of the host is stopped inside a call */
	WF_FAULT_HELD = 11,
	WF_FAULT_THREADS = 13,    /* no memory for the record of one more calling thread */
	WF_FAULT_NULL = 12,       /* a pointer that must not be NULL: where names it */
	WF_FAULT_ENDED = 14,      /* the host asks for a request on a comm that has ended */
	/* like TOO_LARGE, for a message that left before its CTS: each side finds it and refuses the group */
	WF_FAULT_AHEAD = 15,
};

/* What went wrong, as the C side saw it. */
struct wf_fault {
	uint32_t kind;     /* enum wf_fault_kind */
	int32_t err;       /* errno, or 0 */
	uint32_t lane;     /* verbs: WF_LANES + its number for a device, where no lane is meant: a wr_id counts so */
	uint32_t entry;    /* entry of the group */
	uint64_t seq;      /* number of the group */
	uint64_t want;
	uint64_t got;
	const char* where; /* static text */
	const char* call;  /* the host's call: isend, irecv, iflush, test or another; static text */
};

/* One line of the CTS ring, in the sender's memory. A line is trusted by its own seq, which is stored last. */
struct wf_cts_line {
	uint64_t addr;    /* verbs: where to write; tcp: 0 */
	uint64_t size;    /* bytes that the receive takes */
	uint32_t rkey[WF_DEVICES]; /* verbs: per device of the receiver */
	int32_t tag;
	uint32_t n_i;     /* receives in the group << 16 | this one's index */
	uint64_t seq;     /* number of the group, from 1 */
};

/* A message that left before its CTS: of the sender, until it knows the receive; of the receiver, until it is
 * posted. written by: owner */
struct wf_ahead_message {
	uint64_t seq;   /* receiver: its group is this one or a later one */
	uint32_t state; /* enum wf_ahead_state */
	uint32_t size;
	uint32_t place; /* in the receiver's stash */
	int32_t tag;
};

/* One buffer of a request: the send's own, or one of up to eight grouped receives. */
struct wf_entry {
	uint64_t data; /* first byte, as the process reaches it */
	uint64_t mr;   /* handle of its registration, 0 for an empty buffer */
	uint32_t cap;  /* receives: bytes that it takes */
	uint32_t size; /* bytes that the message has; WF_NONE: not known yet */
	uint32_t got;  /* receives: bytes that accepted frames have announced */
	int32_t tag;
};

/* A request slot. written by: owner. A request that was refused, too, is over only when left and parts are 0: until
 * then lanes read or write its memory. */
struct wf_req {
	uint32_t gen;       /* generation in its handle; 0: free */
	uint32_t state;     /* enum wf_req_state */
	uint32_t n;         /* entries */
	uint32_t left;      /* entries of which bytes are still to be handed over, or, tcp receives, to be announced */
	uint64_t seq;       /* number of its group */
	uint32_t line;      /* line counter of its group */
	/* sends: what a frame's header says, which is the index in the group, or WF_AHEAD of one that leaves before its
	 * CTS: a flag of its own would be one more store for every message */
	uint32_t entry;
	uint32_t cursor;    /* tcp sends: bytes handed to streams */
	/* begun and not complete: frames over tcp, and writes that the kernel still reads where they lie; shares of a
	 * message or reads of a flush over verbs */
	uint32_t parts;
	uint32_t round;     /* the comm's round in which it was last tested */
	uint32_t next;      /* of the list that it is on: free slots, or the sends of a group */
	uint32_t shares;    /* verbs receives: of the message, as its first one said */
	uint32_t came;      /* verbs receives: shares that came, a bit each */
	uint32_t devices;   /* verbs flushes: devices that are still to be read on, a bit each */
	uint32_t place;     /* sends that leave before their CTS: where in the receiver's stash */
	struct wf_entry e[WF_GROUP];
	uint64_t pad[WF_GROUP];     /* 512 bytes */
	uint64_t begins[WF_GROUP];  /* tcp receives, by entry: where frames of a message began and ended, see tcp/frame.h */
	uint64_t ends[WF_GROUP];
};

/* What the host's profiler hears of a request, where it hears anything. written by: owner */
struct wf_req_events {
	uint64_t phandle[WF_GROUP]; /* the host's, one per entry */
	uint64_t event[WF_GROUP];   /* what the profiler named its events, 0: none. Verbs sends: by lane, else by entry */
	uint32_t shares_left[WF_GROUP]; /* verbs, first send of a group: of each event, shares that are not complete */
	uint32_t gen;    /* the request's: else the handles are those of an earlier one */
	uint32_t pad;
	uint64_t message; /* the recorder's name of the request; 0: it has none */
	uint64_t began;   /* clock at which it did, where it is counted; 0: it is not */
	uint64_t pad1;
};

/* A flush that met a held gate. Who takes one (any) writes it and stores gen last; then only its test does, inside
 * the gate but for gen, which it clears at the end. */
struct wf_late {
	uint32_t gen;     /* generation in its handle; 0: free; WF_NONE: being written */
	uint32_t size;
	uint64_t data;
	uint64_t mr;
	uint64_t deadline; /* clock at which it gives up */
	uint64_t request; /* handle of the flush's own request, once it has begun */
};

/* One lane of a comm: a queue pair, or its streams. written by: core, but for the words of its provider. */
struct wf_lane {
	uint64_t ops;       /* const struct wf_lane_ops*; 0: no such lane, or lane 0's ops drive it */
	uint64_t area;      /* provider memory inside the slab */
	uint32_t index;     /* 0..31 */
	uint32_t epoch;     /* raised when the lane is replaced */
	uint32_t streams;   /* tcp: number of streams */
	uint32_t chunk;     /* tcp: bytes per frame */
	uint32_t rotor;     /* tcp: stream that is tried first; written by: owner */
	uint32_t cts_bytes; /* tcp: bytes already sent of the CTS group at the queue's head; written by: owner */
	uint32_t ahead;     /* messages below this size may leave before their receive is known */
	uint32_t pad0;
	uint32_t posted;    /* verbs: work requests posted, mod 2^32; written by: owner */
	uint32_t completed; /* verbs: of those, known to be complete; written by: owner */
	uint64_t pad1;
};

/* A turn in which a lane takes a message. written by: core, at any time */
struct wf_turn {
	uint32_t lane;
	uint32_t timed; /* 1: the time of its message is taken */
};

/* A group of receives that was refused. written by: owner */
struct wf_refusal {
	uint64_t seq;
	uint32_t open; /* receives that no message has met, a bit each */
	int32_t tag[WF_GROUP];
	uint32_t pad;
};

/* What a lane does with groups that several lanes share, and with messages of its own whose time is taken. */
struct wf_gauge {
	uint64_t bytes;  /* of those, known to be complete; written by: owner */
	uint64_t busy;   /* nanoseconds in which it had some of them to move; written by: owner */
	/* its part of a group, beside the other lanes' weights; taken when a group begins. written by: core, at any time */
	uint32_t weight;
	uint32_t pad[3];
};

/* A comm: head of the slab. */
struct wf_comm {
	/* line 0, read by every call. written by: core, but for held, error and owner, which any thread writes, seldom */
	uint32_t gen;      /* generation of the slab, in the comm's handle; survives Free */
	uint32_t state;    /* enum wf_comm_state */
	uint32_t kind;     /* WF_KIND_SEND or WF_KIND_RECV */
	uint32_t device;
	uint32_t index;    /* number of the slab */
	uint32_t held;     /* 1: somebody holds the gate */
	uint64_t error;    /* generation << 32 | code; code 0: healthy */
	uint64_t owner;    /* record of the thread that called last */
	/* the host's callback for net events, ncclProfilerCallback_t; 0: none. The owner takes it away while no profiler
	 * wants any, the core gives it back */
	uint64_t events;
	uint32_t nlanes;
	uint32_t cuts;     /* 1: a send that is larger than its receive is cut to it, not refused; nothing leaves ahead */
	uint32_t coalesce; /* tcp sender: 1: small sends are done once they are copied. written by: core, at any time */
	uint32_t streak_most; /* tcp sender: a streak of so many wants that. written by: core, at any time */

	/* line 1, seldom used. written by: core, but for the links */
	uint64_t cookie;      /* the core's name for the comm */
	uint64_t upcalls;     /* const struct wf_upcalls* */
	uint64_t meter;       /* where its messages are counted, struct weft_meter_place*; 0: nowhere */
	uint64_t list_before; /* the comm before it on the output list; under the lock of listed */
	uint64_t list_next;   /* the next one, under the same lock; also links freed slabs */
	uint32_t refuse_code; /* what requests of a refused group end with. written by: any */
	uint32_t pad1[5];

	/* line 2, both sides. written by: owner */
	uint64_t listed;      /* record of the thread on whose output list it stands, or 0; under that record's lock */
	uint64_t messages;    /* messages whose last byte was handed over, or coalesced, or arrived */
	uint64_t bytes;
	uint32_t req_gen;     /* generation given to the last request; survives Free */
	uint32_t free_head;   /* free request slots, last freed first */
	uint32_t slots;       /* slots ever used; those above were never touched */
	uint32_t outstanding; /* requests that the host has not seen end */
	uint32_t round;       /* grows when a request is tested again: lanes are polled once per round */
	/* posted sends, or flushes, that are not wholly handed over, or which the kernel still reads where they lie; the
	 * coalesced ones count as one */
	uint32_t unsent;
	/* of ahead[], in use: a comm has one direction, so either side's messages have the same place. sender: those that
	 * left before their CTS; receiver: those that wait for a receive */
	uint32_t aheads;
	uint32_t ahead_first; /* they are ahead[ahead_first % WF_AHEADS] and those that follow */
	uint32_t queue_head;  /* requests that lanes have not wholly taken: queue[queue_head..queue_tail) */
	uint32_t queue_tail;

	/* line 3, send side. written by: owner */
	uint64_t head_seq;    /* group at the head, from 1: the one that sends are matched in */
	uint32_t head_line;   /* its line counter */
	uint32_t head_mask;   /* its entries that are matched */
	uint32_t head_refused; /* 1: refused, its remaining sends end at once */
	uint32_t cts_line;    /* line counter of the next CTS to arrive (tcp) */
	uint64_t cts_seq;     /* number of the next CTS group to arrive (tcp) */
	uint32_t cts_entry;   /* entries of it that have arrived (tcp) */
	/* tcp: tests of sends since sends left; small ones wait for company while it is below WF_PUSH */
	uint32_t push;
	uint32_t last_write;  /* tcp: the thread's count of large writes when this comm's last one left */
	uint32_t head_n;      /* its receives, as its first line said; 0: not seen yet */
	uint32_t ahead_at;    /* where the free part of the peer's stash begins */
	uint32_t ahead_room;  /* bytes of the stash; written by: core */
	uint32_t idle;        /* tcp: the thread's count of idle polls when a send left last */
	uint32_t alone;       /* tcp: sends that leave at once, since none came to the last one that waited */

	/* line 4, receive side. written by: owner */
	uint64_t next_seq;    /* number of the next group, from 1 */
	uint64_t tail_seq;    /* oldest group that is not complete */
	uint32_t next_line;   /* line counter of the next group */
	uint32_t tail_line;   /* line counter below which every line is free again */
	uint64_t cts_out;     /* first group whose CTS is not wholly sent */
	uint32_t incomplete;  /* groups that are not complete */
	uint32_t cts_next;    /* tcp: line counter of the group at cts_out */
	/* calls that find nothing to do until output that waits for company leaves: CTS, or a sender's small messages */
	uint32_t lazy;
	uint32_t unsaid;      /* bytes that came ahead since CTS left */
	uint32_t refused;     /* 1: a group was refused, and messages that belong to it may still come */
	uint32_t heard;       /* both sides: 1: the lanes know that a profiler may hear of messages */
	uint32_t unheard;     /* events in a row that no profiler wanted */
	uint32_t open_events; /* that it has */

	/* line 5, tcp senders. written by: owner */
	uint64_t vain;        /* isends that returned no request: no receive was posted, or no slot free; verbs, too */
	uint64_t uncopied;    /* bytes that the kernel has sent from where they lie */
	uint32_t zero_open;   /* writes of such bytes that the kernel may still read */
	uint32_t zero_copied; /* why the kernel has copied such bytes all the same: enum wf_zero_copied */
	/* small sends that are done and not wholly written, whose bytes are those of stash[] from the one to the other */
	uint32_t coalesced, coalesced_at, coalesced_end;
	uint32_t streak;      /* small sends in a row that were one at a time, with nothing else in between */
	uint64_t pad5[3];

	struct wf_lane lanes[WF_LANES];
	/* the lanes in turn, for messages that one lane carries: each as often as its weight says */
	uint32_t places, pad6; /* of the order, in use. written by: core, at any time */
	struct wf_turn order[WF_ORDER];
	uint64_t pad7[31];
	/* provider memory of the lanes. Free gives the pages behind the first back; the first stream's is before them */
	uint64_t area[WF_STREAMS * WF_STREAM_BYTES / 8];
	struct wf_gauge gauge[WF_LANES];
	/* slots of posted requests that lanes take in order: sends, or flushes on the receive side, which has no sends */
	uint32_t queue[WF_REQUESTS];
	/* receive side: slot of group seq at seq mod 256; WF_GROUP_DONE | n once it is complete and the slot another's: one
	 * load tells which, and n lines become free when all groups before it are complete */
	uint32_t group[WF_LINES];
	uint32_t match[WF_GROUP];    /* send side: slots matched in the head group */
	uint32_t pad8[8];
	/* ring, out and sink are one range, registered on verbs. ring: what the peer writes, CTS on the send side, records
	 * on the receive side: trust nothing. out: what is written into the peer's ring. sink: where flushes read to. */
	struct wf_cts_line ring[WF_LINES + WF_LINES_SPARE];
	struct wf_cts_line out[WF_LINES + WF_LINES_SPARE];
	uint64_t sink[8];
	struct wf_late late[WF_LATES];
	struct wf_req req[WF_SLOTS];
	struct wf_ahead_message ahead[WF_AHEADS];
	struct wf_refusal refusals[WF_LINES]; /* tcp receive side: the last refused groups, at seq mod 256 */
	struct wf_req_events req_events[WF_SLOTS]; /* by request slot; written only where wf_comm.events is set */
	uint64_t pad9[176]; /* whole pages */
	uint64_t stash[WF_STASH / 8]; /* messages that came ahead; where in it, their sender says. Or coalesced ones */
};

/* A thread that calls in. Never freed; a later thread takes over the record of one that ended, with its list. */
struct wf_thread {
	uint64_t in_call;   /* comm whose gate the thread has entered, or 0 */
	uint32_t used;      /* 1: a living thread has it. written by: any */
	uint32_t lock;      /* guards list_head, list_tail and the listed comms' links. written by: any */
	uint64_t list_head; /* comms with unsent output */
	uint64_t list_tail;
	struct wf_fault fault; /* raised inside the gate, reported after leaving it; kind 0: none */
	uint32_t idle;      /* polls of receives over TCP that found nothing */
	uint32_t writes;    /* large ones over TCP, of all its comms */
	uint64_t wants;     /* cookie of the comm whose lanes want the core, 0: none; it hears outside the gate */
	uint64_t pad[3];
};

/* What a port that carries comms of a device calls registered memory. */
struct wf_keys {
	uint32_t lkey, rkey;
};

/* Registered memory. Never freed; recycled with a new generation. written by: core */
struct wf_mr {
	uint32_t gen;    /* generation in its handle; 0: not registered */
	uint32_t last;   /* last generation given out */
	uint32_t device;
	uint32_t kind;   /* pointer kind as registered */
	uint64_t addr;   /* address that the host names */
	uint64_t length;
	uint64_t base;   /* address of the first byte as it is registered */
	uint64_t cpu;    /* address where the CPU reaches the first byte, for TCP; 0: it does not */
	uint32_t user;   /* 1 + index of the only comm that used it; 0: none did, WF_NONE: several. written by: any */
	uint32_t pad;
	struct wf_keys key[WF_DEVICES]; /* the first is on the line of what is said above */
	uint64_t cookie; /* the core's name for it */
};

#endif
