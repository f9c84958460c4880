/* harness.h: what the stand-alone drivers share: connected loopback sockets, comms over them, clocks and failure. */
#ifndef WEFT_STRESS_HARNESS_H
#define WEFT_STRESS_HARNESS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "../../tcp/stream.h"
#include "../gate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CHECK(cond, ...) ((cond) ? (void)0 : fail(__LINE__, #cond, __VA_ARGS__))

__attribute__((format(printf, 3, 4), noreturn)) static inline void fail(int line, const char* cond, const char* format,
	...) {
	va_list args;
	int err = errno;
	fprintf(stderr, "line %d: %s: ", line, cond);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, " (errno %d)\n", err);
	abort();
}

static inline double now(void) {
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* A connected pair of loopback TCP sockets, non-blocking. */
static inline void tcp_pair(int fds[2]) {
	int one = 1, l = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof a;
	CHECK(l >= 0 && bind(l, (struct sockaddr*)&a, sizeof a) == 0 && listen(l, 1) == 0, "listen");
	CHECK(getsockname(l, (struct sockaddr*)&a, &len) == 0, "getsockname");
	fds[0] = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(fds[0] >= 0 && connect(fds[0], (struct sockaddr*)&a, sizeof a) == 0, "connect");
	fds[1] = accept(l, NULL, NULL);
	CHECK(fds[1] >= 0, "accept");
	close(l);
	for (int i = 0; i < 2; i++) {
		setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		fcntl(fds[i], F_SETFL, fcntl(fds[i], F_GETFL) | O_NONBLOCK);
	}
}

static inline struct wf_comm* comm_over(uint32_t kind, const int* fds, uint32_t n, const struct wf_upcalls* up,
	uint64_t cookie) {
	struct wf_comm* c = wf_comm_new(kind, 0, cookie, up);
	CHECK(c, "no slab");
	wf_stream_attach(c, 0, fds, n, WF_STASH);
	return c;
}

static inline void* register_memory(void* p, size_t n, uint32_t index) {
	struct wf_mr* mr = wf_mr_at(index);
	CHECK(mr, "no entry");
	wf_put(mr->device, 0u);
	wf_put(mr->addr, (uint64_t)(uintptr_t)p);
	wf_put(mr->base, (uint64_t)(uintptr_t)p);
	wf_put(mr->cpu, (uint64_t)(uintptr_t)p);
	wf_put(mr->length, (uint64_t)n);
	wf_store(mr->user, 0u);
	wf_put(mr->last, wf_get(mr->last) + 1);
	wf_store(mr->gen, wf_get(mr->last));
	return (void*)(uintptr_t)wf_handle(WF_KIND_MR, wf_get(mr->last), index >> 16, index & WF_SLOT_MASK);
}

/* Holds the gate as the core does. */
static inline void hold(struct wf_comm* c) {
	double end = now() + 20;
	while (!wf_hold_try(c)) {
		CHECK(now() < end, "somebody keeps the gate");
		sched_yield();
	}
	wf_barrier();
	while (!wf_hold_clear(c)) {
		CHECK(now() < end, "a thread stays inside");
		sched_yield();
	}
}

/* As the core does: does a request that is not over use mr? The gate is held. */
static inline int wf_comm_uses(struct wf_comm* c, uint64_t mr) {
	uint32_t slots = wf_get(c->outstanding) ? wf_get(c->slots) : 0;
	for (uint32_t s = 0; s < slots; s++) {
		struct wf_req* r = &c->req[s];
		uint32_t state = wf_get(r->state);
		int begun = state == WF_REQ_REFUSED && (wf_get(r->left) || wf_get(r->parts));
		if (!begun && state != WF_REQ_MATCHED && state != WF_REQ_POSTED) continue;
		for (uint32_t i = 0; i < wf_get(r->n); i++)
			if (wf_get(r->e[i].mr) == mr) return 1;
	}
	return 0;
}

static inline uint64_t mix(uint64_t x) {
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

static inline uint64_t draw(uint64_t* state) { return mix(*state += 0x9e3779b97f4a7c15ull); }

#endif
