/* frame.h: a frame's header as a slab keeps it, who reads and who writes it, and whether the frames of a message are
 * the whole of it. */
#ifndef WEFT_FRAME_H
#define WEFT_FRAME_H

#include "stream.h"

#include "../fastpath/event.h"
#include "../fastpath/gate.h"

#include <errno.h>
#include <sys/types.h>

#define WF_FRAME ((uint32_t)sizeof(struct wf_frame))
#define WF_AHEAD_MOST (256u << 10)   /* a payload up to here may go ahead, */
#define WF_AHEAD_STRIPED (16u << 10) /* and up to here where larger ones can use several streams */
#define WF_SMALL (16u << 10)         /* sends up to here wait for company */
#define WF_GATHER 8u                 /* frames in one write, */
#define WF_TOGETHER (32u << 10)      /* and bytes after which no further one is taken */
#define WF_SOON 8u                   /* calls that find nothing to do, for which small sends wait for company */
#define WF_COALESCE (8u << 10)       /* sends up to here are coalesced; to copy larger ones costs what it saves */

_Static_assert(sizeof(struct wf_frame) == 32, "frame header");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "frames are little endian");

/* A frame as the words that a slab keeps. */
union wf_words {
	struct wf_frame frame;
	uint64_t word[4];
	unsigned char byte[32];
};

/* A frame being written: a header and a payload that lies in the send's buffer. */
struct wf_piece {
	union wf_words head;
	uint64_t data; /* its payload */
	uint32_t slot;
	uint32_t done; /* bytes already written */
};

/* Bytes of its payload that are still to be written. */
static inline uint32_t wf_piece_left(const struct wf_piece* p) {
	return p->head.frame.len - (p->done > WF_FRAME ? p->done - WF_FRAME : 0);
}

static inline void wf_frame_put(uint64_t* words, const union wf_words* f) {
	for (int i = 0; i < 4; i++) wf_put(words[i], f->word[i]);
}

static inline union wf_words wf_frame_get(uint64_t* words) {
	return (union wf_words){.word = {wf_get(words[0]), wf_get(words[1]), wf_get(words[2]), wf_get(words[3])}};
}

static inline struct wf_stream* wf_stream_at(struct wf_lane* l, uint32_t i) {
	return (struct wf_stream*)(uintptr_t)(wf_get(l->area) + i * WF_STREAM_BYTES);
}

/* The kernel has no room or nothing to read: not now. */
static inline int wf_not_now(int err) { return err == EAGAIN || err == EINTR || err == ENOBUFS || err == ENOMEM; }

/* The nth queued send may wait for others: it is not larger than most, and nothing of it has left. */
static inline int wf_may_wait(struct wf_comm* c, uint32_t nth, uint32_t most) {
	struct wf_req* r = &c->req[wf_get(c->queue[nth % WF_REQUESTS])];
	return !wf_get(r->cursor) && wf_get(r->e[0].size) <= most;
}

/* stream.c: frames between the queue and a stream. */
WF_HIDDEN uint32_t wf_gather(struct wf_comm* c, struct wf_lane* l, struct wf_stream* s, struct wf_piece* p);
WF_HIDDEN void wf_written(struct wf_comm* c, struct wf_stream* s, struct wf_piece* p, uint32_t n, size_t k);

/* coalesce.c: small sends that are done before they leave. */
WF_HIDDEN int wf_coalesce(struct wf_comm* c, struct wf_lane* l);
WF_HIDDEN void wf_streak(struct wf_comm* c);

/* frames.c: what a header that has arrived says. 0, or -1 after a fault. */
WF_HIDDEN int wf_data_frame(struct wf_comm* c, struct wf_lane* l, struct wf_stream* s);
WF_HIDDEN void wf_divert(struct wf_comm* c, struct wf_stream* s);
WF_HIDDEN int wf_cts_frame(struct wf_comm* c, struct wf_lane* l, struct wf_stream* s);
WF_HIDDEN uint32_t wf_cts_room(struct wf_comm* c);            /* bytes of CTS frames that there are lines for */
WF_HIDDEN void wf_landed(struct wf_comm* c, uint32_t slot);   /* a frame's payload is complete */

/* zerocopy.c: payloads that the kernel sends from where they lie. */
WF_HIDDEN void wf_zero_attach(struct wf_comm* c, struct wf_stream* s);
WF_HIDDEN int wf_zero_may(struct wf_stream* s, struct wf_piece* p);
WF_HIDDEN ssize_t wf_zero_write(struct wf_comm* c, struct wf_stream* s, struct wf_piece* p, uint32_t most,
	size_t* want);
WF_HIDDEN void wf_zero_reap(struct wf_comm* c, struct wf_stream* s);

/* A part of a send is over: a frame that is written, or a write that the kernel no longer reads. */
static inline void wf_part_over(struct wf_comm* c, uint32_t slot) {
	struct wf_req* r = &c->req[slot];
	wf_put(r->parts, wf_get(r->parts) - 1);
	if (wf_get(r->parts) || wf_get(r->cursor) != wf_get(r->e[0].size)) return;
	if (wf_unlikely(wf_get(c->events))) wf_events_stop(c, slot);
	wf_sent(c, slot);
}

/* Frames of a message come in any order and any cut, so what has come is no range, and to count bytes is not enough:
 * where two overlap another place stays empty. Frames that are the whole, once, form a chain from 0 to its end:
 * their ends, and 0, are their beginnings, and its end. Both sides are kept as a product, over a prime field, of
 * each place and a random key; of n other frames the products are equal with a chance of n in 2^61, and whoever
 * sends them does not know the key. */
#define WF_PRIME ((1ull << 61) - 1)

static inline uint64_t wf_times(uint64_t a, uint64_t place) {
	__extension__ unsigned __int128 x = (unsigned __int128)a * ((wf_get(wf_cover_key) + place) % WF_PRIME);
	uint64_t sum = (uint64_t)(x & WF_PRIME) + (uint64_t)(x >> 61);
	return sum >= WF_PRIME ? sum - WF_PRIME : sum;
}

/* A frame of entry i begins and ends there, in a message of several. */
static inline void wf_cover(struct wf_req* r, uint32_t i, uint64_t begin, uint64_t end) {
	wf_put(r->begins[i], wf_times(wf_get(r->begins[i]), begin));
	wf_put(r->ends[i], wf_times(wf_get(r->ends[i]), end));
}

static inline int wf_covered(struct wf_req* r, uint32_t i, uint64_t size) {
	return wf_times(wf_get(r->ends[i]), 0) == wf_times(wf_get(r->begins[i]), size);
}

/* Whether the host reads a receive while it is written, as NCCL does with its protocol LL128: a line ends in a flag,
 * and once that is there, so must be the line. The kernel promises no order within what it copies. The buffer of
 * LL128 has this length and takes eight messages; in 2.7 to 2.11 it is registered with others. */
#define WF_LL128 4915200u

static inline int wf_read_early(struct wf_entry* e) {
	uint32_t cap = wf_get(e->cap);
	return cap && (cap == WF_LL128 / 8 || wf_get(wf_mr_of(wf_get(e->mr))->length) == WF_LL128);
}

#endif
