/* hostile.c: peers that send what they must not, and hosts that hand in what they never got: nothing outside the
 * receives is written, nothing crashes, everything is answered.  hostile [seed [rounds]] */
#include "harness.h"

#include <sys/mman.h>
#include <sys/wait.h>

/* Instead of libc's: no slab comes back empty, as on locked pages. */
int madvise(void* at, size_t bytes, int advice) {
	(void)at;
	(void)bytes;
	(void)advice;
	return 0;
}

static uint32_t protocol_faults;

static int fault(uint64_t cookie, const struct wf_fault* f) {
	protocol_faults += f->kind == WF_FAULT_PROTOCOL;
	return cookie ? 6 : 3;
}
static const struct wf_upcalls upcalls = {.fault = fault};

/* A hostile peer: frames that are nearly right. Nothing outside the receives is written, and the comm ends. */
static void garbage(uint64_t seed) {
	uint64_t s = seed;
	protocol_faults = 0;
	for (int round = 0; round < 300; round++) {
		int p[2], sender = round % 2, rc = 0;
		tcp_pair(p);
		struct wf_comm* c = comm_over(sender ? WF_KIND_SEND : WF_KIND_RECV, p, 1, &upcalls, 1);
		void* h = (void*)(uintptr_t)wf_comm_open(c);
		if (draw(&s) % 2) wf_put(c->ahead_room, 0u); /* sends wait for their CTS */
		unsigned char* mem[8]; /* apart, so that a byte too many meets a red zone */
		void *mr[8], *req[4] = {0};
		for (uint32_t i = 0; i < 8; i++) mr[i] = register_memory(mem[i] = malloc(512), 512, i);
		for (int i = 0; i < 4 && !sender; i++) {
			void *d[2] = {mem[2 * i], mem[2 * i + 1]}, *m[2] = {mr[2 * i], mr[2 * i + 1]};
			size_t sizes[2] = {512, 512};
			int tags[2] = {1, 2};
			CHECK(weft_irecv(h, 2, d, sizes, tags, m, NULL, &req[i]) == 0 && req[i], "irecv");
		}
		uint32_t size = 0, at = 0, entry = 0;
		uint64_t seq = 1;
		for (int n = 0; n < 40 && !rc; n++) {
			if (!at) size = (uint32_t)(draw(&s) % 513);
			uint32_t len = draw(&s) % 2 || sender ? size - at : (uint32_t)(draw(&s) % (size - at + 1));
			if (!len && size) len = size - at;
			struct wf_frame f = {.kind = sender ? WF_FRAME_CTS : WF_FRAME_DATA, .entry = (uint8_t)entry,
				.flags = sender ? 2 : 0, .len = sender ? 0 : len,
				.size = size, .offset = sender ? entry + 1 : at, .seq = seq};
			if (!sender && !at && len == size && draw(&s) % 3 == 0) {
				f.kind = WF_FRAME_AHEAD;
				f.entry = 255;
				f.offset = (entry + 1 + draw(&s) % 2 * 3) | (draw(&s) % (WF_STASH + 600 - size)) << 32;
			}
			at = sender || at + len == size ? 0 : at + len;
			if (!at) {
				seq += entry;
				entry = !entry;
			}
			if (draw(&s) % 10 == 0) ((unsigned char*)&f)[draw(&s) % 32] ^= (unsigned char)(1u << draw(&s) % 8);
			unsigned char bytes[32 + 1024];
			memcpy(bytes, &f, 32);
			memset(bytes + 32, n, 1024);
			size_t whole = 32 + (f.len < 1024 ? f.len : 1024), cut = draw(&s) % whole;
			CHECK(send(p[1], bytes, cut, 0) == (ssize_t)cut, "send");
			int done = 0;
			void* r = NULL;
			rc = sender ? weft_isend(h, mem[0], 8, 1, mr[0], NULL, &r) : weft_test(req[draw(&s) % 4], &done, NULL);
			if (rc == 3) rc = 0; /* a request that was done before */
			CHECK(send(p[1], bytes + cut, whole - cut, 0) == (ssize_t)(whole - cut), "send");
		}
		hold(c);
		wf_comm_close(c);
		wf_hold_end(c);
		wf_comm_free(c);
		close(p[0]);
		close(p[1]);
		for (int i = 0; i < 8; i++) free(mem[i]);
	}
	CHECK(protocol_faults > 50, "only %u protocol faults", protocol_faults);
}

/* Values that are no handles, and handles that are no longer. */
static void handles(uint64_t seed) {
	uint64_t s = seed;
	int done, p[2];
	for (int i = 0; i < 2000; i++) {
		void *junk = (void*)(uintptr_t)(i < 3 ? (uint64_t)i : draw(&s) >> draw(&s) % 60), *r = (void*)1, *d = NULL,
			*m = NULL;
		size_t size = 0;
		int tag = 0;
		CHECK(weft_isend(junk, NULL, 0, 0, NULL, NULL, &r) == 3 && !r, "isend");
		r = (void*)1;
		CHECK(weft_irecv(junk, 1, &d, &size, &tag, &m, NULL, &r) == 3 && !r, "irecv");
		CHECK(weft_iflush(junk, 1, &d, &tag, &m, &r) == 3 && !r, "iflush");
		CHECK(weft_test(junk, &done, NULL) == 3 && !done, "test");
	}
	tcp_pair(p);
	struct wf_comm* c = comm_over(WF_KIND_RECV, p, 1, &upcalls, 0);
	void *h = (void*)(uintptr_t)wf_comm_open(c), *r[300], *d = NULL, *m = NULL;
	size_t size = 0;
	int n = 0, tag = 0, negative[] = {0, -1};
	CHECK(weft_iflush(h, 2, (void*[]){NULL, NULL}, negative, (void*[]){NULL, NULL}, r) == 3 &&
		!r[0], "iflush of -1 bytes");
	for (r[0] = NULL; weft_irecv(h, 1, &d, &size, &tag, &m, NULL, &r[n]) == 0 && r[n]; n++) r[n + 1] = (void*)1;
	CHECK(n == WF_LINES, "%d receives of one", n);
	hold(c);
	wf_comm_close(c);
	wf_hold_end(c);
	wf_comm_free(c);
	for (int i = 0; i < n; i++) CHECK(weft_test(r[i], &done, NULL) == 3, "request of a closed comm");
	close(p[0]);
	close(p[1]);
}

/* A slab is another comm's: nothing of the one before, which had receives, is believed, or told to its peer. direct:
 * it was of queue pairs, and its peer wrote all of the ring; else the tags of refused groups are there. */
static void recycled_of(int direct, int receives) {
	int p[2], done;
	tcp_pair(p);
	struct wf_comm *c = comm_over(WF_KIND_RECV, p, 1, &upcalls, 0), *before = c;
	void *h = (void*)(uintptr_t)wf_comm_open(c), *old[WF_LINES], *r, *d = NULL, *m = NULL;
	size_t size = 0;
	int tag = 0;
	for (int i = 0; i < receives; i++)
		CHECK(weft_irecv(h, 1, &d, &size, &tag, &m, NULL, &old[i]) == 0 && old[i], "irecv");
	for (uint64_t i = 0; i < WF_LINES + WF_LINES_SPARE; i++) {
		struct wf_cts_line line = {.size = 8, .rkey = {1, 1}, .n_i = 1 << 16, .seq = i + 1};
		if (direct) c->ring[i] = c->out[i] = line;
		else if (i < (uint64_t)receives) c->ring[(i + 1) % WF_LINES] = line;
	}
	if (direct) wf_put(c->lanes[0].streams, 0u);
	hold(c);
	wf_comm_close(c);
	wf_hold_end(c);
	wf_comm_free(c);
	CHECK((c = comm_over(WF_KIND_SEND, p, 1, &upcalls, 1)) == before, "not the slab that was freed last");
	h = (void*)(uintptr_t)wf_comm_open(c);
	for (int i = 0; i < receives; i++)
		CHECK(weft_test(old[i], &done, NULL) == 3 && !done, "request %d of the comm before", i);
	unsigned char* mem = calloc(1, 280000);
	void* mr = register_memory(mem, 280000, 0);
	CHECK(weft_isend(h, mem, 280000, 0, mr, NULL, &r) == 0 && !r, "isend finds a receive of the comm before");
	for (char* at = (char*)c->ring; at < (char*)c->late; at++) CHECK(!*at, "byte %td of the ring", at - (char*)c->ring);
	hold(c);
	wf_comm_close(c);
	wf_hold_end(c);
	wf_comm_free(c);
	close(p[0]);
	close(p[1]);
	free(mem);
}

static void recycled(uint64_t seed) {
	(void)seed;
	int receives[] = {1, 7, 8, 31, 32, 33, WF_LINES};
	recycled_of(1, WF_LINES);
	for (size_t i = 0; i < sizeof receives / sizeof *receives; i++) {
		recycled_of(0, receives[i]);
		recycled_of(1, receives[i]);
	}
}

/* A message waits for a tag that does not come: what it costs a group does not grow with those that have gone by. */
static void unwanted(uint64_t seed) {
	(void)seed;
	int p[2], done, tag = 1;
	tcp_pair(p);
	struct wf_comm* c = comm_over(WF_KIND_RECV, p, 1, &upcalls, 1);
	void *h = (void*)(uintptr_t)wf_comm_open(c), *mem = calloc(1, 8), *mr = register_memory(mem, 8, 0), *r;
	struct { struct wf_frame head; uint64_t payload; } f =
		{{.kind = WF_FRAME_AHEAD, .entry = 255, .len = 8, .size = 8, .offset = 7, .seq = 1}, 42};
	CHECK(send(p[1], &f, sizeof f, 0) == sizeof f, "send");
	for (uint64_t seq = 1; seq < 3 * WF_LINES; seq++) {
		size_t size = 8;
		CHECK(weft_irecv(h, 1, &mem, &size, &tag, &mr, NULL, &r) == 0 && r, "irecv");
		f.head = (struct wf_frame){.kind = WF_FRAME_DATA, .len = 8, .size = 8, .seq = seq};
		for (done = 0; !done && wf_get(c->cts_out) == seq;) CHECK(weft_test(r, &done, NULL) == 0, "group %lu", seq);
		CHECK(send(p[1], &f, sizeof f, 0) == sizeof f, "send");
		while (!done) CHECK(weft_test(r, &done, NULL) == 0, "group %lu", seq);
		CHECK(recv(p[1], &f.head, sizeof f.head, 0) == sizeof f.head, "CTS");
		CHECK(!wf_get(c->aheads) ||
			wf_get(c->ahead[0].seq) + 1 >= seq, "group %lu is asked again when group %lu comes",
			wf_get(c->ahead[0].seq), seq);
	}
	CHECK(wf_get(c->aheads) == 1 && wf_get(c->ahead[0].state) == WF_AHEAD_WAITS &&
		wf_get(c->ahead[0].seq) > 2 * WF_LINES, "it waits in state %u", wf_get(c->ahead[0].state));
	hold(c);
	wf_comm_close(c);
	wf_hold_end(c);
	wf_comm_free(c);
	close(p[0]);
	close(p[1]);
	free(mem);
}

/* A forked child gets an error from every call, and its copies of the sockets are closed. */
static void forked(uint64_t seed) {
	int p[2], done, status;
	(void)seed;
	tcp_pair(p);
	struct wf_comm* c = comm_over(WF_KIND_RECV, p, 1, &upcalls, 1);
	void *h = (void*)(uintptr_t)wf_comm_open(c), *r = NULL, *d = NULL, *m = NULL;
	size_t size = 0;
	int tag = 0;
	CHECK(wf_process_init() == 0 && wf_track_fd(p[0]) == 0, "track");
	CHECK(weft_irecv(h, 1, &d, &size, &tag, &m, NULL, &r) == 0 && r && !weft_forked(), "irecv");
	fflush(stdout);
	weft_starts(1); /* as the guest does before Go */
	pid_t child = fork();
	if (!child) {
		void* again = NULL;
		_exit(weft_forked() == 2 && weft_test(r, &done, NULL) == 2 &&
			weft_irecv(h, 1, &d, &size, &tag, &m, NULL, &again) == 2 &&
			weft_isend(h, NULL, 0, 0, NULL, NULL, &again) == 2 && weft_iflush(h, 1, &d, &tag, &m, &again) == 2 &&
				fcntl(p[0], F_GETFD) < 0 ? 0 : 1);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0, "child returned %d", status);
	weft_starts(-1);
	CHECK(weft_test(r, &done, NULL) == 0 && !done, "the parent goes on");
	wf_untrack_fd(p[0]);
	hold(c);
	wf_comm_close(c);
	wf_hold_end(c);
	wf_comm_free(c);
	close(p[0]);
	close(p[1]);
}

int main(int argc, char** argv) {
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	int rounds = argc > 2 ? atoi(argv[2]) : 1;
	for (int i = 0; i < rounds; i++, seed++) {
		garbage(seed);
		handles(seed);
		recycled(seed);
		unwanted(seed);
		forked(seed);
		printf("ok garbage, handles, recycled, unwanted, forked, seed %lu, %u protocol faults\n", seed,
			protocol_faults);
	}
	return 0;
}
