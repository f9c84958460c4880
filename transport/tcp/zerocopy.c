/* zerocopy.c: payloads that the kernel sends from where they lie, MSG_ZEROCOPY (Documentation/networking/
 * msg_zerocopy.rst).
 *
 * The kernel reads the host's pages until the peer has acknowledged them, so each such write is one more part of its
 * send, which is over when the kernel reports the write's number on the socket's error queue. Numbers are reported in
 * ranges and may come out of order. The pages are pinned: for a small write that costs more than a copy would. A
 * message that goes ahead is copied, since a send of it is to be over when the kernel has it.
 *
 * The kernel copies all the same where nothing else is possible: on a path inside the machine, for a card that cannot
 * gather. It says so, and no more is asked of it on that stream. Memory that it cannot pin, and writes beyond its
 * limits (net.core.optmem_max, RLIMIT_MEMLOCK) or ours, are copied as ever. */
#define _GNU_SOURCE
#include "frame.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define WF_ZERO_LEAST (32u << 10) /* bytes that are worth it */
#define WF_ZERO_MOST (512u << 10) /* in one write: RLIMIT_MEMLOCK is charged with what is asked for */

/* Whether the core asked for it, the socket knows. */
void wf_zero_attach(struct wf_comm* c, struct wf_stream* s) {
	int on = 0;
	socklen_t size = sizeof on;
	if (wf_get(c->kind) == WF_KIND_SEND) getsockopt((int)wf_get(s->fd), SOL_SOCKET, SO_ZEROCOPY, &on, &size);
	wf_put(s->zero, on ? 1u : 0u);
	wf_put(s->zero_next, 0u);
	wf_put(s->zero_open, 0u);
	for (uint32_t i = 0; on && i < WF_ZEROS; i++) wf_put(s->zeros[i].slot, WF_NONE);
}

int wf_zero_may(struct wf_stream* s, struct wf_piece* p) {
	return wf_unlikely(wf_get(s->zero)) && p->head.frame.kind == WF_FRAME_DATA && wf_piece_left(p) >= WF_ZERO_LEAST &&
		wf_get(s->zeros[wf_get(s->zero_next) % WF_ZEROS].slot) == WF_NONE;
}

/* Has the kernel send a payload: bytes that it took; -1: errno. */
static ssize_t wf_zero_payload(struct wf_comm* c, struct wf_stream* s, uint32_t slot, void* payload, size_t bytes) {
	int fd = (int)wf_get(s->fd);
	ssize_t k = send(fd, payload, bytes, MSG_ZEROCOPY | MSG_NOSIGNAL | MSG_DONTWAIT);
	if (k < 0 && (errno == ENOBUFS || errno == ENOMEM || errno == EFAULT)) {
		if (errno == EFAULT) wf_put(s->zero, 0u);
		wf_put(c->zero_copied, wf_get(c->zero_copied) | WF_ZERO_NOT_PINNED);
		return send(fd, payload, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	if (k <= 0) return k;
	struct wf_req* r = &c->req[slot];
	struct wf_zero* z = &s->zeros[wf_get(s->zero_next) % WF_ZEROS];
	wf_put(z->slot, slot);
	wf_put(z->bytes, (uint32_t)k);
	wf_put(s->zero_next, wf_get(s->zero_next) + 1);
	wf_put(s->zero_open, wf_get(s->zero_open) + 1);
	wf_put(c->zero_open, wf_get(c->zero_open) + 1);
	wf_put(r->parts, wf_get(r->parts) + 1);
	return k;
}

/* Writes the frame's header as ever, then its payload. *want: bytes that it tries; returns those written; -1: errno. */
ssize_t wf_zero_write(struct wf_comm* c, struct wf_stream* s, struct wf_piece* p, uint32_t most, size_t* want) {
	uint32_t head = p->done < WF_FRAME ? WF_FRAME - p->done : 0, skip = p->done + head - WF_FRAME;
	uint32_t left = wf_piece_left(p) < most ? wf_piece_left(p) : most;
	ssize_t k = 0;
	if (left > WF_ZERO_MOST) left = WF_ZERO_MOST;
	*want = head + left;
	if (head) k = send((int)wf_get(s->fd), p->head.byte + p->done, head, MSG_MORE | MSG_NOSIGNAL | MSG_DONTWAIT);
	if (k < (ssize_t)head) return k;
	ssize_t m = wf_zero_payload(c, s, p->slot, (void*)(uintptr_t)(p->data + skip), left);
	return m < 0 && head ? k : k + m;
}

/* Writes first to last of the stream are no longer read. */
static void wf_zero_over(struct wf_comm* c, struct wf_stream* s, uint32_t first, uint32_t last, int copied) {
	if (copied) {
		wf_put(s->zero, 0u);
		wf_put(c->zero_copied, wf_get(c->zero_copied) | WF_ZERO_COPIED);
	}
	for (uint32_t n = last - first + 1; n && wf_get(s->zero_open); n--, first++) {
		struct wf_zero* z = &s->zeros[first % WF_ZEROS];
		uint32_t slot = wf_get(z->slot);
		if (slot == WF_NONE) continue;
		wf_put(z->slot, WF_NONE);
		wf_put(s->zero_open, wf_get(s->zero_open) - 1);
		wf_put(c->zero_open, wf_get(c->zero_open) - 1);
		if (!copied) wf_put(c->uncopied, wf_get(c->uncopied) + wf_get(z->bytes));
		wf_part_over(c, slot);
	}
}

/* Takes in what the kernel reports. */
void wf_zero_reap(struct wf_comm* c, struct wf_stream* s) {
	while (wf_get(s->zero_open)) {
		_Alignas(struct cmsghdr) char control[128];
		struct msghdr m = {.msg_control = control, .msg_controllen = sizeof control};
		if (recvmsg((int)wf_get(s->fd), &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return;
		for (struct cmsghdr* h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
			int v4 = h->cmsg_level == IPPROTO_IP && h->cmsg_type == IP_RECVERR;
			int v6 = h->cmsg_level == IPPROTO_IPV6 && h->cmsg_type == IPV6_RECVERR;
			struct sock_extended_err* e = (struct sock_extended_err*)(void*)CMSG_DATA(h);
			if ((v4 || v6) && e->ee_origin == SO_EE_ORIGIN_ZEROCOPY)
				wf_zero_over(c, s, e->ee_info, e->ee_data, e->ee_code & SO_EE_CODE_ZEROCOPY_COPIED);
		}
	}
}

/* Resets the streams of which the kernel still reads the host's pages: the host gives them up. Packets that are with a
 * card by now cannot be called back. */
void wf_stream_cut(struct wf_comm* c) {
	for (uint32_t n = 0; wf_get(c->zero_open) && n < wf_get(c->nlanes); n++)
		for (uint32_t i = 0; i < wf_get(c->lanes[n].streams); i++) {
			struct wf_stream* s = wf_stream_at(&c->lanes[n], i);
			struct sockaddr nobody = {.sa_family = AF_UNSPEC}; /* disconnects, and empties the queue */
			if (wf_get(s->zero_open)) connect((int)wf_get(s->fd), &nobody, sizeof nobody);
		}
}
