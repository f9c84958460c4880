/* bench.c: the executor and the stream pump against a plain C non-blocking loop over loopback TCP: same two
 * processes, same pinning, same buffers, alternating rounds, medians.  bench [streams [seconds per figure]];
 * BENCH=lat, bw or idle in the environment for one part, SLOTS=1 for one buffer a side. */
#include "harness.h"

#include <spawn.h>
#include <sys/wait.h>

extern char** environ;

#define WINDOW 8
#define ROUNDS 5
#define LAT_ITERS 4000

static const size_t sizes[] = {8, 1024, 16 << 10, 64 << 10, 128 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
#define NSIZES (sizeof sizes / sizeof *sizes)

static int fault(uint64_t cookie, const struct wf_fault* f) {
	fprintf(stderr, "fault: comm %lu kind %u errno %d %s: %s seq %lu want %lu got %lu\n", cookie, f->kind, f->err,
		f->call ? f->call : "", f->where, f->seq, f->want, f->got);
	return 6;
}
static const struct wf_upcalls upcalls = {.fault = fault};

static int role, ctl, plain[2]; /* plain[0]: this process sends first on it */
static void *out, *in, *mem_mr;
static char* mem;
static size_t mem_bytes = 256u << 20;

static void sync_peer(void) {
	char b = 0;
	CHECK(write(ctl, &b, 1) == 1 && read(ctl, &b, 1) == 1, "peer is gone");
}

static void put_all(int fd, const char* p, size_t n) {
	while (n) {
		ssize_t k = send(fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (k > 0) {
			p += k;
			n -= (size_t)k;
		}
		else CHECK(k < 0 && errno == EAGAIN, "send");
	}
}
static void get_all(int fd, char* p, size_t n) {
	while (n) {
		ssize_t k = recv(fd, p, n, MSG_DONTWAIT);
		if (k > 0) {
			p += k;
			n -= (size_t)k;
		}
		else CHECK(k < 0 && errno == EAGAIN, "recv");
	}
}

/* Buffers that messages go round in: WINDOW, as far as memory allows; SLOTS=1 keeps them in the cache. */
static size_t slots(size_t size) {
	size_t n = getenv("SLOTS") ? (size_t)atoi(getenv("SLOTS")) : WINDOW;
	return size * n <= mem_bytes / 2 ? n : mem_bytes / 2 / size;
}

static void* isend(char* p, size_t size) {
	void* r = NULL;
	while (!r) CHECK(weft_isend(out, p, size, 0, mem_mr, NULL, &r) == 0, "isend");
	return r;
}
static void* irecv(char* p, size_t size) {
	void *r = NULL, *d = p, *mr = mem_mr;
	int tag = 0;
	CHECK(weft_irecv(in, 1, &d, &size, &tag, &mr, NULL, &r) == 0 && r, "irecv");
	return r;
}
static void wait_for(void* r, size_t size) {
	int done = 0, got = -1;
	while (!done) CHECK(weft_test(r, &done, &got) == 0, "test");
	CHECK((size_t)got == size, "%d bytes", got);
}

/* Seconds per message, one way, sender to receiver; role 0 sends. */
static double oneway(int ours, size_t size, int count) {
	char *tx = mem, *rx = mem + mem_bytes / 2, ack = 0;
	size_t m = slots(size), w = WINDOW;
	void* req[WINDOW];
	sync_peer();
	double t = now();
	if (!ours) {
		for (int i = 0; i < count; i++) {
			if (role == 0) put_all(plain[0], tx + (size_t)i % m * size, size);
			else get_all(plain[0], rx + (size_t)i % m * size, size);
		}
	} else if (role == 0) {
		int sent = 0, ended = 0;
		while (ended < count) {
			if (sent < count && sent - ended < (int)w) {
				void* r = NULL;
				CHECK(weft_isend(out, tx + (size_t)sent % m * size, size, 0, mem_mr, NULL, &r) == 0, "isend");
				if (r) req[sent++ % w] = r;
			}
			if (ended < sent) {
				int done = 0;
				CHECK(weft_test(req[ended % w], &done, NULL) == 0, "test");
				ended += done;
			}
		}
	} else {
		int posted = 0, ended = 0;
		while (ended < count) {
			while (posted < count && posted - ended < (int)w) {
				req[posted % w] = irecv(rx + (size_t)posted % m * size, size);
				posted++;
			}
			int done = 0;
			CHECK(weft_test(req[ended % w], &done, NULL) == 0, "test");
			ended += done;
		}
	}
	if (role == 0) get_all(plain[1], &ack, 1);
	else put_all(plain[1], &ack, 1);
	return (now() - t) / count;
}

static int cmp(const void* a, const void* b) {
	double d = *(const double*)a - *(const double*)b;
	return d < 0 ? -1 : d > 0;
}

/* Median and p99 seconds, one way, of ping-pong. */
static void pingpong(int ours, size_t size, int iters, double* p50, double* p99) {
	double* s = malloc(sizeof(double) * (size_t)iters);
	char *tx = mem, *rx = mem + mem_bytes / 2;
	void *r = ours && role == 1 ? irecv(rx, size) : NULL, *q;
	sync_peer();
	for (int i = -200; i < iters; i++) {
		double t = now();
		if (!ours && role == 0) {
			put_all(plain[0], tx, size);
			get_all(plain[0], rx, size);
		}
		if (!ours && role == 1) {
			get_all(plain[0], rx, size);
			put_all(plain[0], tx, size);
		}
		if (ours && role == 0) {
			q = isend(tx, size);
			r = irecv(rx, size);
			wait_for(r, size);
			wait_for(q, size);
		}
		if (ours && role == 1) {
			wait_for(r, size);
			q = isend(tx, size);
			if (i + 1 < iters) r = irecv(rx, size);
			wait_for(q, size);
		}
		if (i >= 0) s[i] = (now() - t) / 2;
	}
	qsort(s, (size_t)iters, sizeof *s, cmp);
	*p50 = s[iters / 2];
	*p99 = s[iters * 99 / 100];
	free(s);
}

/* Nanoseconds of a test that finds nothing, of one that finds another request's poll done, and of a whole 0-cost
 * isend miss. */
static void idle(void) {
	enum { N = 200000 };
	void *a, *b;
	int done;
	sync_peer();
	if (role == 0) {
		a = irecv(mem, 8);
		b = irecv(mem, 8);
		double t = now();
		for (int i = 0; i < N; i++) weft_test(a, &done, NULL);
		double one = (now() - t) / N * 1e9;
		t = now();
		for (int i = 0; i < N; i++) {
			weft_test(a, &done, NULL);
			weft_test(b, &done, NULL);
		}
		double two = (now() - t) / N / 2 * 1e9;
		printf("idle test %.0f ns; of two requests in turn %.0f ns each\n", one, two);
		sync_peer();
		wait_for(a, 8);
		wait_for(b, 8);
	} else {
		sync_peer();
		wait_for(isend(mem, 8), 8);
		wait_for(isend(mem, 8), 8);
	}
}

static void run(double seconds) {
	const char* part = getenv("BENCH");
	for (size_t s = 0; s < 4 && (!part || !strcmp(part, "lat")); s++) {
		double a[2][ROUNDS], b[2][ROUNDS];
		for (int r = 0; r < ROUNDS; r++)
			for (int ours = 0; ours < 2; ours++) pingpong(ours, sizes[s], LAT_ITERS, &a[ours][r], &b[ours][r]);
		for (int o = 0; o < 2; o++) {
			qsort(a[o], ROUNDS, sizeof(double), cmp);
			qsort(b[o], ROUNDS, sizeof(double), cmp);
		}
		if (role == 0)
			printf("ping-pong %8zu B  plain p50 %6.2f p99 %6.2f us   ours p50 %6.2f p99 %6.2f us   ratio %.2f %.2f\n",
				sizes[s], a[0][ROUNDS / 2] * 1e6, b[0][ROUNDS / 2] * 1e6,
				a[1][ROUNDS / 2] * 1e6, b[1][ROUNDS / 2] * 1e6, a[1][ROUNDS / 2] / a[0][ROUNDS / 2],
					b[1][ROUNDS / 2] / b[0][ROUNDS / 2]);
	}
	for (size_t s = 0; s < NSIZES && (!part || !strcmp(part, "bw")); s++) {
		double v[2][ROUNDS], ratio[ROUNDS];
		int count = (int)(seconds / ROUNDS / 2 / ((double)sizes[s] / 8e9 + 2e-6)) + 2;
		for (int r = 0; r < ROUNDS; r++) {
			for (int ours = 0; ours < 2; ours++) v[ours][r] = oneway(ours, sizes[s], count);
			ratio[r] = v[0][r] / v[1][r];
		}
		for (int o = 0; o < 2; o++) qsort(v[o], ROUNDS, sizeof(double), cmp);
		qsort(ratio, ROUNDS, sizeof(double), cmp);
		if (role == 0)
			printf("one way %9zu B  plain %6.2f GB/s  ours %6.2f GB/s  ratio of medians %.3f, median of ratios %.3f "
				"(%.2f us per message, %d messages)\n", sizes[s], (double)sizes[s] / v[0][ROUNDS / 2] * 1e-9,
				(double)sizes[s] / v[1][ROUNDS / 2] * 1e-9, v[0][ROUNDS / 2] / v[1][ROUNDS / 2], ratio[ROUNDS / 2],
				v[1][ROUNDS / 2] * 1e6, count);
	}
	if (!part || !strcmp(part, "idle")) idle();
}

int main(int argc, char** argv) {
	uint32_t streams = argc > 1 ? (uint32_t)atoi(argv[1]) : 1;
	double seconds = argc > 2 ? atof(argv[2]) : 1;
	int fds[3 + 2 * WF_STREAMS]; /* control, plain 0, plain 1, there, back */
	pid_t child = 0;
	if (argc > 3) {
		role = 1;
		for (uint32_t i = 0; i < 3 + 2 * streams; i++) fds[i] = atoi(argv[3 + i]);
	} else {
		char text[3 + 2 * WF_STREAMS][12], n[12];
		char* args[8 + 2 * WF_STREAMS] = {argv[0], n, argc > 2 ? argv[2] : "1"};
		int theirs[3 + 2 * WF_STREAMS];
		snprintf(n, sizeof n, "%u", streams);
		for (uint32_t i = 0; i < 3 + 2 * streams; i++) {
			int p[2];
			tcp_pair(p);
			if (i == 0) {
				fcntl(p[0], F_SETFL, 0);
				fcntl(p[1], F_SETFL, 0);
			}
			fds[i] = p[0];
			theirs[i] = p[1];
			snprintf(text[i], sizeof text[i], "%d", p[1]);
			args[3 + i] = text[i];
			fcntl(p[0], F_SETFD, FD_CLOEXEC);
		}
		CHECK(posix_spawn(&child, "/proc/self/exe", NULL, NULL, args, environ) == 0, "spawn");
		for (uint32_t i = 0; i < 3 + 2 * streams; i++) close(theirs[i]);
	}
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(role, &set);
	sched_setaffinity(0, sizeof set, &set);
	ctl = fds[0];
	plain[0] = fds[1];
	plain[1] = fds[2];
	mem = aligned_alloc(4096, mem_bytes);
	memset(mem, role, mem_bytes);
	mem_mr = register_memory(mem, mem_bytes, 0);
	out = (void*)(uintptr_t)wf_comm_open(comm_over(WF_KIND_SEND, fds + 3 + (role ? streams : 0), streams, &upcalls, 1));
	in = (void*)(uintptr_t)wf_comm_open(comm_over(WF_KIND_RECV, fds + 3 + (role ? 0 : streams), streams, &upcalls, 2));
	run(seconds);
	sync_peer();
	if (child) waitpid(child, NULL, 0);
	return 0;
}
