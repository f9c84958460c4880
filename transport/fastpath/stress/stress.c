/* stress.c: the executor and the stream pump under ThreadSanitizer, AddressSanitizer and UndefinedBehaviorSanitizer,
 * over loopback TCP.  stress [seed [rounds]] */
#include "scenarios.h"

static void lanes(int i) {
	struct conn* k = &conns[i];
	uint32_t streams = 1u << i % 4;
	int a[8], b[8];
	for (uint32_t f = 0; f < streams; f++) {
		int p[2];
		tcp_pair(p);
		a[f] = p[0];
		b[f] = p[1];
		if (i % 2)
			for (int e = 0, small = 65536; e < 2; e++)
				setsockopt(p[e], SOL_SOCKET, e ? SO_RCVBUF : SO_SNDBUF, &small, sizeof small);
	}
	k->tx.c = comm_over(WF_KIND_SEND, a, streams, &upcalls, (uint64_t)(2 * i + 1));
	k->rx.c = comm_over(WF_KIND_RECV, b, streams, &upcalls, (uint64_t)(2 * i + 2));
}

static void detach(struct actor* a) {
	int fds[WF_STREAMS];
	for (uint32_t n = wf_stream_detach(a->c, fds, WF_STREAMS); n; n--) close(fds[n - 1]);
}

static void traffic(uint64_t seed) {
	connect_all(seed, 120, lanes);
	run_traffic(seed, 120, service);
	close_all(detach);
}

/* Sockets are shut down under traffic. */
static void* killer(void* seed) {
	uint64_t s = (uint64_t)(uintptr_t)seed;
	for (int i = 0; i < CONNS; i++) {
		usleep(draw(&s) % 3000);
		struct actor* a = draw(&s) % 2 ? &conns[i].tx : &conns[i].rx;
		struct wf_stream* st = (struct wf_stream*)(uintptr_t)wf_get(a->c->lanes[0].area);
		shutdown((int)wf_get(st->fd), SHUT_RDWR);
	}
	return NULL;
}
static void death(uint64_t seed) {
	connect_all(seed, 1u << 30, lanes);
	run_death(seed, killer);
	close_all(detach);
}

static void dereg(uint64_t seed) {
	connect_all(seed, 1u << 30, lanes);
	run_dereg(seed, NULL);
	close_all(detach);
}

int main(int argc, char** argv) {
	run_all(argc, argv, (const struct scenario[]){{"traffic", traffic}, {"death", death}, {"dereg", dereg},
		{NULL, NULL}});
	return 0;
}
