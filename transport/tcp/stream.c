/* stream.c: the stream pump: moves frames between a comm's requests and non-blocking sockets, on the thread that
 * calls.
 *
 *  sender    the queue holds posted sends. Each stream writes its partly written frame, then takes the next frames
 *            from the queue; small ones are gathered into one write, a large one is written from where it lies.
 *  receiver  each stream reads the rest of its payload straight into the receive's buffer and what follows into a
 *            small staging buffer on the stack, so that the next header comes with the payload; staging is used up
 *            before return. A payload that the host reads while it comes goes through staging as a whole.
 *  ahead     small messages whose CTS are not here yet leave as well; the receiver keeps them in its stash if need
 *            be.
 *  CTS       the receiver makes CTS frames when they are flushed, which waits while messages come ahead; the sender
 *            reads them into its ring.
 *
 * A write or read that the kernel cuts short ends the visit: asking again would only earn EAGAIN. */
#define _GNU_SOURCE
#include "../fastpath/event.h"
#include "../fastpath/inorder.h"
#include "frame.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define WF_CALL_BYTES (4u << 20) /* bytes that one visit of a stream may move, and one write */
#define WF_SHARE_SUM (1u << 20)  /* bytes that the sending comms of a thread write in one round, */
#define WF_SHARE (128u << 10)    /* each at least these */
#define WF_READ (128u << 10)     /* one read, whose bytes the host finds in the cache */
#define WF_CHUNK (128u << 10)    /* frame of a large message when there are several streams */
#define WF_ALONE 64u             /* sends that leave at once after one to which no company came */
#define WF_STAGING 2048u
#define WF_COPIED (8u << 10)     /* writes up to here are copied together, which is cheaper than a vector */

_Static_assert(sizeof(struct wf_stream) <= WF_STREAM_BYTES, "stream fits its area");
_Static_assert(WF_TOGETHER <= WF_SHARE, "a share cuts the last piece of a write only");

uint64_t wf_cover_key;

static int wf_broken(struct wf_lane* l, uint32_t stream, const char* where, ssize_t rc, int err) {
	int closed = rc == 0 || err == EPIPE || err == ECONNRESET;
	wf_raise(closed ? WF_FAULT_PEER_CLOSED : WF_FAULT_SOCKET, where, rc == 0 ? 0 : err, 0, 0, stream);
	wf_self->fault.lane = wf_get(l->index);
	return -1;
}

/* ---- sender ---- */

/* The frames that the stream would write next: its unfinished one, then from the queue on. Takes nothing yet. */
uint32_t wf_gather(struct wf_comm* c, struct wf_lane* l, struct wf_stream* s, struct wf_piece* p) {
	uint32_t n = 0, bytes = 0, chunk = wf_get(l->chunk);
	uint32_t head = wf_get(c->queue_head), tail = wf_get(c->queue_tail);
	if (wf_get(s->tx_slot) != WF_NONE) {
		p[0].slot = wf_get(s->tx_slot);
		p[0].done = wf_get(s->tx_done);
		p[0].data = wf_get(s->tx_data);
		p[0].head = wf_frame_get(s->tx_frame);
		bytes = WF_FRAME + p[0].head.frame.len - p[0].done;
		n = 1;
	}
	for (uint32_t cursor = WF_NONE; n < WF_GATHER && head != tail && bytes < WF_TOGETHER; n++) {
		uint32_t slot = wf_get(c->queue[head % WF_REQUESTS]);
		struct wf_req* r = &c->req[slot];
		int ahead = wf_get(r->entry) == WF_AHEAD;
		if (ahead && (s != wf_stream_at(l, 0) || wf_get(l->index))) break; /* in order, on one stream */
		uint32_t size = wf_get(r->e[0].size), at = cursor == WF_NONE ? wf_get(r->cursor) : cursor;
		uint32_t len = size - at < chunk ? size - at : chunk;
		p[n].slot = slot;
		p[n].done = 0;
		p[n].data = wf_get(r->e[0].data) + at;
		p[n].head.frame = (struct wf_frame){.kind = WF_FRAME_DATA, .entry = (uint8_t)wf_get(r->entry),
			.lane = (uint8_t)wf_get(l->index), .epoch = (uint16_t)wf_get(l->epoch),
			.len = len, .size = size, .offset = at, .seq = wf_get(r->seq)};
		if (ahead) {
			p[n].head.frame.kind = WF_FRAME_AHEAD;
			p[n].head.frame.offset = (uint32_t)wf_get(r->e[0].tag) | (uint64_t)wf_get(r->place) << 32;
		}
		bytes += len;
		cursor = at + len;
		if (cursor == size) {
			cursor = WF_NONE;
			head++;
		}
	}
	return n;
}

/* Bytes that a visit may write. Comms that write in turn share what a core's cache holds: of more, the peer finds
 * nothing there when it reads. How many they are is seen from how many large writes there were since the comm's own
 * last. */
static uint32_t wf_share(struct wf_comm* c) {
	uint32_t comms = wf_get(wf_self->writes) - wf_get(c->last_write) + 1;
	if (comms < 2) return WF_CALL_BYTES; /* 0: another thread counted before */
	return WF_SHARE_SUM / comms > WF_SHARE ? WF_SHARE_SUM / comms : WF_SHARE;
}

/* Writes the pieces with one call. */
static ssize_t wf_write(struct wf_stream* s, struct wf_piece* p, uint32_t n, uint32_t most, size_t* want) {
	unsigned char buf[WF_COPIED];
	struct iovec iov[2 * WF_GATHER];
	size_t vecs = 0, used = 0;
	*want = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t head = p[i].done < WF_FRAME ? WF_FRAME - p[i].done : 0, skip = p[i].done + head - WF_FRAME;
		uint32_t left = wf_piece_left(&p[i]) < most ? wf_piece_left(&p[i]) : most;
		if (head) iov[vecs++] = (struct iovec){p[i].head.byte + p[i].done, head};
		if (left) iov[vecs++] = (struct iovec){(unsigned char*)(uintptr_t)p[i].data + skip, left};
		*want += head + left;
	}
	if (*want > sizeof buf)
		return sendmsg((int)wf_get(s->fd), &(struct msghdr){.msg_iov = iov, .msg_iovlen = vecs},
			MSG_NOSIGNAL | MSG_DONTWAIT);
	for (size_t v = 0; v < vecs; v++) {
		memcpy(buf + used, iov[v].iov_base, iov[v].iov_len);
		used += iov[v].iov_len;
	}
	return send((int)wf_get(s->fd), buf, used, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* k bytes of the pieces were written: takes from the queue what was begun, ends what is finished, keeps what is cut. */
void wf_written(struct wf_comm* c, struct wf_stream* s, struct wf_piece* p, uint32_t n, size_t k) {
	for (uint32_t i = 0; i < n && (k || p[i].done); i++) {
		struct wf_req* r = &c->req[p[i].slot];
		if (!p[i].done) {
			uint32_t cursor = wf_get(r->cursor) + p[i].head.frame.len;
			wf_put(r->cursor, cursor);
			wf_put(r->parts, wf_get(r->parts) + 1);
			if (cursor == p[i].head.frame.size) wf_put(c->queue_head, wf_get(c->queue_head) + 1);
		}
		uint32_t left = WF_FRAME + p[i].head.frame.len - p[i].done;
		if (k < left) {
			wf_put(s->tx_slot, p[i].slot);
			wf_put(s->tx_data, p[i].data);
			wf_put(s->tx_done, p[i].done + (uint32_t)k);
			wf_frame_put(s->tx_frame, &p[i].head);
			return;
		}
		k -= left;
		if (p[i].done) wf_put(s->tx_slot, WF_NONE);
		wf_part_over(c, p[i].slot);
	}
}

/* Small sends that follow one another wait for company, until the host has tested one of them twice, or calls
 * anything else in vain. A send after a pause, in which the host looked for messages of others, leaves at once:
 * somebody waits for it. So do those of a host that never has two under way. */
static int wf_waits(struct wf_comm* c) {
	uint32_t head = wf_get(c->queue_head), tail = wf_get(c->queue_tail), n = tail - head, alone = wf_get(c->alone),
		idle = wf_get(wf_self->idle);
	int pushed = wf_get(c->push) >= WF_PUSH;
	int again = idle == wf_get(c->idle) && n == 1 && wf_may_wait(c, head, WF_COALESCE);
	if (!again) wf_put(c->streak, 0u);
	if (pushed && n == 1) wf_put(c->alone, WF_ALONE);
	if (pushed || n >= WF_GATHER || wf_get(c->unsent) != n) { /* unsent: a stream is in the middle of one */
		wf_put(c->push, 0u);
		return 0;
	}
	if (alone) wf_put(c->alone, alone - 1);
	if (alone || idle != wf_get(c->idle)) {
		wf_put(c->idle, idle);
		if (again) wf_streak(c);
		return 0;
	}
	if (!wf_may_wait(c, head, WF_SMALL) || !wf_may_wait(c, tail - 1, WF_SMALL)) return 0;
	if (n == 1) wf_put(c->lazy, WF_SOON);
	wf_list(wf_self, c); /* the host may ask for anything but this comm's sends */
	return 1;
}

static int wf_stream_send(struct wf_comm* c, struct wf_lane* l) {
	if (wf_unlikely(wf_get(c->coalesce) | wf_get(c->coalesced)) && !wf_get(l->index)) {
		int rc = wf_coalesce(c, l);
		if (rc < 0) return wf_broken(l, 0, "send", rc, errno);
		if (rc || !wf_get(c->unsent)) return 0;
	}
	if (wf_waits(c)) return 0;
	uint32_t streams = wf_get(l->streams), rotor = wf_get(l->rotor), share = wf_share(c), moved = 0;
	int begun = wf_get(wf_stream_at(l, rotor)->tx_slot) != WF_NONE;
	struct wf_piece p[WF_GATHER];
	for (uint32_t i = 0; wf_unlikely(wf_get(c->zero_open)) && i < streams; i++) wf_zero_reap(c, wf_stream_at(l, i));
	for (uint32_t full = 0; full < streams && moved < share;) {
		struct wf_stream* s = wf_stream_at(l, rotor);
		uint32_t n = wf_gather(c, l, s, p);
		size_t want = 0;
		int zero = n && wf_zero_may(s, &p[n - 1]), small = zero && n > 1;
		n -= (uint32_t)small; /* those before it by themselves */
		ssize_t k = !n ? 0 : zero && !small ? wf_zero_write(c, s, p, share, &want) : wf_write(s, p, n, share, &want);
		if (k < 0 && !wf_not_now(errno)) return wf_broken(l, rotor, "send", k, errno);
		if (k > 0) wf_written(c, s, p, n, (size_t)k);
		moved += k > 0 ? (uint32_t)k : 0;
		int ended = k <= 0 || (size_t)k < want;
		full = ended ? full + 1 : 0;
		if (streams == 1) continue;
		if (ended || k > WF_CHUNK / 2) {
			rotor = rotor + 1 == streams ? 0 : rotor + 1;
			wf_put(l->rotor, rotor);
		}
	}
	if (moved >= WF_SHARE / 2 || (moved && begun)) { /* the rest of a large message, too */
		uint32_t writes = wf_get(wf_self->writes) + 1;
		wf_put(wf_self->writes, writes);
		wf_put(c->last_write, writes);
	}
	return 0;
}

/* ---- receiver ---- */

/* Uses up k staged bytes: headers, payloads, and the part of a header that stays for the next read. */
static int wf_unstage(struct wf_comm* c, struct wf_lane* l, struct wf_stream* s, const unsigned char* at, size_t k,
	int sender) {
	while (k) {
		uint32_t left = wf_get(s->rx_left), have = wf_get(s->rx_have);
		if (left) {
			size_t m = k < left ? k : left;
			wf_copy_inorder((void*)(uintptr_t)wf_get(s->rx_data), at, m);
			wf_put(s->rx_data, wf_get(s->rx_data) + m);
			wf_put(s->rx_left, left - (uint32_t)m);
			if (m == left) wf_landed(c, wf_get(s->rx_slot));
			at += m;
			k -= m;
			continue;
		}
		uint32_t m = k < WF_FRAME - have ? (uint32_t)k : WF_FRAME - have;
		union wf_words head = wf_frame_get(s->rx_frame);
		memcpy(head.byte + have, at, m);
		wf_frame_put(s->rx_frame, &head);
		at += m;
		k -= m;
		have += m;
		wf_put(s->rx_have, have % WF_FRAME);
		if (have == WF_FRAME && (sender ? wf_cts_frame(c, l, s) : wf_data_frame(c, l, s)) < 0) return -1;
	}
	return 0;
}

/* Reads one stream, at most WF_CALL_BYTES; the number of bytes, or -1 after a fault. */
static int64_t wf_read(struct wf_comm* c, struct wf_lane* l, uint32_t i, int sender) {
	struct wf_stream* s = wf_stream_at(l, i);
	unsigned char staging[WF_STAGING];
	for (int64_t moved = 0;;) {
		if (!sender && wf_get(s->rx_left) && wf_get(s->rx_slot) == WF_NONE) wf_divert(c, s);
		uint32_t left = wf_get(s->rx_early) ? 0 : wf_get(s->rx_left);
		size_t want = left < WF_READ ? left : WF_READ, room = sizeof staging;
		if (sender && room > wf_cts_room(c)) room = wf_cts_room(c);
		if (!room) return moved;
		struct iovec iov[2] = {{(void*)(uintptr_t)wf_get(s->rx_data), want}, {staging, room}};
		ssize_t k;
		if (!left) k = recv((int)wf_get(s->fd), staging, room, MSG_DONTWAIT);
		else if (want < left) k = recv((int)wf_get(s->fd), iov[0].iov_base, want, MSG_DONTWAIT);
		else k = recvmsg((int)wf_get(s->fd), &(struct msghdr){.msg_iov = iov, .msg_iovlen = 2}, MSG_DONTWAIT);
		if (k < 0 && wf_not_now(errno)) return moved;
		if (k <= 0) return wf_broken(l, i, "recv", k, k ? errno : 0);
		size_t direct = (size_t)k < want ? (size_t)k : want, asked = want + (want < left ? 0 : room);
		if (direct) {
			wf_put(s->rx_data, wf_get(s->rx_data) + direct);
			wf_put(s->rx_left, left - (uint32_t)direct);
			if (direct == left) wf_landed(c, wf_get(s->rx_slot));
		}
		if (wf_unstage(c, l, s, staging, (size_t)k - direct, sender) < 0) return -1;
		moved += k;
		if ((size_t)k < asked || moved >= WF_CALL_BYTES || (!sender && !wf_get(c->incomplete))) return moved;
	}
}

/* ---- CTS, from the receiver ---- */

/* Sends the CTS of [cts_out, next_seq), from the lines that irecv has filled, with one write; of a sender, what
 * waits for company. 0: all are out, 1: some are left. A peer that has closed reads no CTS, but what it sent before
 * may still lie here: reading tells. */
static int wf_stream_flush(struct wf_comm* c, struct wf_lane* l) {
	struct wf_frame buf[64];
	if (wf_get(l->index)) return 0;
	if (wf_get(c->kind) == WF_KIND_SEND) {
		wf_put(c->push, (uint32_t)WF_PUSH);
		int rc = wf_get(c->unsent) ? wf_stream_send(c, l) : 0;
		return rc < 0 ? rc : wf_get(c->coalesced) > 0; /* nobody tests these any more */
	}
	uint64_t first = wf_get(c->cts_out), next = wf_get(c->next_seq), seq = first;
	uint32_t n = 0, skip = wf_get(l->cts_bytes), line = wf_get(c->cts_next);
	for (uint32_t group; seq < next; seq++, line += group) {
		struct wf_cts_line* from = &c->out[line % WF_LINES];
		group = wf_get(from->n_i) >> 16;
		if (n + group > sizeof buf / sizeof *buf) break;
		for (uint32_t i = 0; i < group; i++)
			buf[n++] = (struct wf_frame){.kind = WF_FRAME_CTS, .entry = (uint8_t)i, .epoch = (uint16_t)wf_get(l->epoch),
				.flags = (uint16_t)group,
				.size = (uint32_t)wf_get(from[i].size), .offset = (uint32_t)wf_get(from[i].tag), .seq = seq};
	}
	if (!n) return 0;
	ssize_t k = send((int)wf_get(wf_stream_at(l, 0)->fd), (char*)buf + skip, n * WF_FRAME - skip,
		MSG_NOSIGNAL | MSG_DONTWAIT);
	if (k < 0 && (errno == EPIPE || errno == ECONNRESET)) k = (ssize_t)(n * WF_FRAME - skip);
	if (k < 0 && !wf_not_now(errno)) return wf_broken(l, 0, "send", k, errno);
	line = wf_get(c->cts_next);
	for (skip += k > 0 ? (uint32_t)k : 0; first < seq; first++) {
		uint32_t group = wf_get(c->out[line % WF_LINES].n_i) >> 16;
		if (skip < group * WF_FRAME) break;
		skip -= group * WF_FRAME;
		line += group;
	}
	wf_put(c->cts_out, first);
	wf_put(c->cts_next, line);
	wf_put(l->cts_bytes, skip);
	if (first == next) wf_put(c->unsaid, 0u);
	wf_lines_free(c);
	return first < next;
}

/* ---- both ---- */

/* Sender: reads CTS. Receiver: reads data, first where there was some last; two streams without any end the visit. */
static int wf_stream_progress(struct wf_comm* c, struct wf_lane* l) {
	if (wf_get(c->kind) == WF_KIND_SEND) return wf_get(l->index) ? 0 : wf_read(c, l, 0, 1) < 0 ? -1 : 0;
	uint32_t streams = wf_get(l->streams), first = wf_get(l->rotor), empty = 0;
	int64_t moved = 0;
	/* of a refused group, bytes may still come */
	for (uint32_t n = 0; n < streams && empty < 2 && moved < WF_CALL_BYTES &&
			(wf_get(c->incomplete) || wf_get(c->refused)); n++) {
		uint32_t i = (first + n) % streams;
		int64_t k = wf_read(c, l, i, 0);
		if (k < 0) return -1;
		if (k) wf_put(l->rotor, i);
		else empty++;
		moved += k;
	}
	if (!moved) {
		wf_put(l->rotor, (first + empty) % streams);
		wf_put(wf_self->idle, wf_get(wf_self->idle) + 1);
	}
	return wf_self->fault.kind ? -1 : 0; /* a group was refused */
}

/* ---- attach, detach ---- */

/* The stream is the one whose turn it is; a large message may use several. */
static int64_t wf_stream_describe(struct wf_comm* c, struct wf_req* r, uint32_t entry, union wf_event* event) {
	struct wf_lane* l = &c->lanes[0];
	uint32_t size = wf_get(r->e[entry].size);
	event->sock = (ncclProfilerNetSockDescr_v1_t){.type = ncclProfileSocket, .sock = {
		.fd = (int)wf_get(wf_stream_at(l, wf_get(l->rotor))->fd), .op = wf_get(c->kind) == WF_KIND_RECV,
		.length = size == WF_NONE ? wf_get(r->e[entry].cap) : size}};
	return NCCL_PROFILER_NET_TYPE_SOCK | NCCL_PROFILER_NET_SOCKET_VER;
}

static const struct wf_lane_ops wf_stream_ops = {
	.send = wf_stream_send,
	.progress = wf_stream_progress,
	.flush = wf_stream_flush,
	.describe = wf_stream_describe,
};

void wf_stream_attach(struct wf_comm* c, uint32_t lane, const int* fds, uint32_t n, uint32_t stash) {
	uint32_t before = 0;
	for (uint32_t i = 0; i < wf_get(c->nlanes); i++) before += wf_get(c->lanes[i].streams);
	struct wf_lane* l = &c->lanes[lane];
	wf_put(l->ops, (uint64_t)(uintptr_t)&wf_stream_ops);
	wf_put(l->area, (uint64_t)(uintptr_t)((char*)c->area + before * WF_STREAM_BYTES));
	wf_put(l->index, lane);
	wf_put(l->epoch, 0u);
	wf_put(l->streams, n);
	wf_put(l->rotor, 0u);
	wf_put(l->cts_bytes, 0u);
	for (uint32_t i = 0; i < n; i++) {
		struct wf_stream* s = wf_stream_at(l, i);
		wf_put(s->fd, (uint32_t)fds[i]);
		wf_put(s->tx_slot, WF_NONE);
		wf_put(s->rx_have, 0u);
		wf_put(s->rx_left, 0u);
		wf_zero_attach(c, s);
	}
	wf_put(c->nlanes, lane + 1);
	if (!lane) wf_put(c->ahead_room, stash < WF_STASH ? stash : WF_STASH);
	wf_put(c->coalesce, 0u);
	wf_put(c->streak_most, WF_STREAK);
	wf_put(c->lanes[0].ahead, (before + n > 1 ? WF_AHEAD_STRIPED : WF_AHEAD_MOST) + 1);
	for (uint32_t i = 0; i <= lane; i++) wf_put(c->lanes[i].chunk, before + n > 1 ? WF_CHUNK : WF_SIZE_MAX);
}

uint32_t wf_stream_detach(struct wf_comm* c, int* fds, uint32_t room) {
	uint32_t n = 0;
	for (uint32_t i = 0; i < wf_get(c->nlanes); i++)
		for (uint32_t s = 0; s < wf_get(c->lanes[i].streams) && n < room; s++)
			fds[n++] = (int)wf_get(wf_stream_at(&c->lanes[i], s)->fd);
	wf_put(c->nlanes, 0u);
	return n;
}
