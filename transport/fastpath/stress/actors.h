/* actors.h: comms in pairs, inside one process, for the stress drivers: what is common to every kind of lane.
 *
 * Actors are the two ends of a connection; two threads step them in turns, so that a comm often changes its thread,
 * while a third one holds gates, registers and deregisters. Every byte is checked. */
#ifndef WEFT_STRESS_ACTORS_H
#define WEFT_STRESS_ACTORS_H

#include "harness.h"

#include "../../tcp/stream.h"

#include <pthread.h>
#include <sys/mman.h>

#define CONNS 6
#define WINDOW 6 /* groups in flight a connection */
#define BIG (384u << 10)
#define AHEAD_MOST (256u << 10)   /* bytes of a message that may leave ahead of its CTS, */
#define AHEAD_STRIPED (16u << 10) /* and where there are several streams */
#define CODE_CLOSED 6
#define CODE_USAGE 5

struct message { uint32_t size, cap; int tag; };
struct group { uint32_t n; struct message m[WF_GROUP]; uint32_t order[WF_GROUP]; };

struct conn;
struct actor {
	pthread_mutex_t mu; /* stands for the host's promise: one caller at a time */
	struct conn* conn;
	struct wf_comm* c;
	void* handle;
	void* mr;
	unsigned char* mem;
	uint64_t issued, ended;  /* groups */
	uint32_t entry;          /* sends of the group being issued */
	struct group now;
	void* req[WINDOW][WF_GROUP];
	void* flush;             /* of the group that is done */
	int dead;                /* code its comm failed with */
};
struct conn {
	uint64_t seed, groups, refuse_at;
	struct actor tx, rx;
	uint32_t faults[WF_FAULT_AHEAD + 1]; /* by kind; counted with atomics */
	int expect_fault;
	int told; /* a fault of one end fails the other, as the core tells the peer */
	int untouched; /* the receiving host leaves its buffers alone, so that only the pump writes them */
};

static struct conn conns[CONNS];
static uint32_t stop, next_mr;

/* The core's part: returns a code, and carries a refusal to the other side. */
static int fault(uint64_t cookie, const struct wf_fault* f) {
	if (!cookie) return 3;
	struct conn* k = &conns[(cookie - 1) / 2];
	__atomic_fetch_add(&k->faults[f->kind], 1, __ATOMIC_RELAXED);
	if (f->kind == WF_FAULT_TOO_LARGE) {
		hold(k->rx.c);
		wf_comm_refuse(k->rx.c, f->seq, CODE_USAGE);
		wf_hold_end(k->rx.c);
		return CODE_USAGE;
	}
	if (f->kind == WF_FAULT_AHEAD) return CODE_USAGE;
	CHECK(k->expect_fault, "unexpected fault: kind %u %s %s seq %lu want %lu got %lu err %d", f->kind, f->call,
		f->where, f->seq, f->want, f->got, f->err);
	struct wf_comm* other = cookie % 2 ? k->rx.c : k->tx.c;
	if (k->told) wf_comm_fail(other, wf_get(other->gen), CODE_CLOSED);
	return CODE_CLOSED;
}
/* The core would begin to make what a flush waits for, or look at how fast small sends are: the drivers bring the one
 * and decide the other by themselves. */
static void wants(uint64_t cookie) { CHECK(cookie, "lanes of no comm"); }
static const struct wf_upcalls upcalls = {.fault = fault, .wants = wants};

/* What both ends know of a group. */
static void plan(struct conn* k, uint64_t seq, struct group* g) {
	uint64_t s = mix(k->seed ^ seq * 977);
	g->n = draw(&s) % 3 ? 1 : 1 + (uint32_t)(draw(&s) % WF_GROUP);
	for (uint32_t i = 0; i < g->n; i++) {
		static const uint32_t classes[] = {0, 1, 8, 33, 1023, 1024, 1025, 4099, 65537, BIG};
		uint32_t cap = classes[draw(&s) % 10];
		if (g->n > 2 && cap > 4099) cap = 4099;
		g->m[i].cap = cap;
		g->m[i].size = draw(&s) % 4 && cap ? cap : (uint32_t)(draw(&s) % (cap + 1));
		g->m[i].tag = (int)(draw(&s) % 5);
		g->order[i] = i;
	}
	if (seq == k->refuse_at) g->m[g->n - 1].size = g->m[g->n - 1].cap + 1;
	for (uint32_t i = g->n; i > 1; i--) { /* shuffled, but equal tags keep their order: they are assigned in it */
		uint32_t j = (uint32_t)(draw(&s) % i), a = g->order[i - 1];
		g->order[i - 1] = g->order[j];
		g->order[j] = a;
	}
	for (uint32_t i = 0; i < g->n; i++)
		for (uint32_t j = i + 1; j < g->n; j++)
			if (g->m[g->order[i]].tag == g->m[g->order[j]].tag && g->order[i] > g->order[j]) {
				uint32_t a = g->order[i];
				g->order[i] = g->order[j];
				g->order[j] = a;
			}
}

/* Two messages of a group may be big. */
#define SMALL 4160u
#define ROOM (2 * (BIG + 64) + (WF_GROUP - 2) * SMALL)
static unsigned char* place(struct actor* a, uint64_t seq, uint32_t entry) {
	return a->mem + seq % WINDOW * ROOM + (entry < 2 ? entry * (BIG + 64) : 2 * (BIG + 64) + (entry - 2) * SMALL);
}

static void fill(unsigned char* p, uint32_t n, uint64_t s) {
	for (uint32_t i = 0; i < n; i += 8) {
		uint64_t v = mix(s + i);
		memcpy(p + i, &v, n - i < 8 ? n - i : 8);
	}
}
static void verify(unsigned char* p, uint32_t n, uint64_t s, unsigned char guard) {
	for (uint32_t i = 0; i < n; i += 8) {
		uint64_t v = mix(s + i);
		CHECK(!memcmp(p + i, &v, n - i < 8 ? n - i : 8), "byte %u of %u is wrong", i, n);
	}
	for (uint32_t i = n; i < n + 32; i++) CHECK(p[i] == guard, "byte %u behind the message was written", i - n);
}
static uint64_t content(struct conn* k, uint64_t seq, uint32_t entry) { return mix(k->seed + seq * 31 + entry * 7); }

/* Every other connection is tested only after a look has said that a request is done, or that only test can tell. */
static int test(struct conn* k, void* r, int* done, int* sizes) {
	return k->seed % 2 && weft_test_waits(r) > 0 ? 0 : weft_test(r, done, sizes);
}

/* One call of the sending host. */
static void step_tx(struct actor* a) {
	struct conn* k = a->conn;
	if (a->issued < k->groups && a->issued - a->ended < WINDOW) {
		if (!a->entry) plan(k, a->issued, &a->now);
		uint32_t e = a->now.order[a->entry];
		struct message* m = &a->now.m[e];
		unsigned char* p = place(a, a->issued, e);
		fill(p, m->size, content(k, a->issued, e));
		void* r = (void*)1;
		int rc = weft_isend(a->handle, p, m->size, m->tag, a->mr, NULL, &r);
		if (rc) {
			CHECK(k->expect_fault, "isend returned %d", rc);
			a->dead = rc;
		} else if (r) {
			a->req[a->issued % WINDOW][e] = r;
			if (++a->entry == a->now.n) {
				a->entry = 0;
				a->issued++;
			}
			return;
		}
	}
	if (a->dead || a->ended == a->issued) return;
	struct group g;
	plan(k, a->ended, &g);
	int left = 0;
	for (uint32_t i = 0; i < g.n && !a->dead; i++) {
		void** r = &a->req[a->ended % WINDOW][i];
		int done = 0, size = -1;
		if (!*r) continue;
		int rc = test(k, *r, &done, &size);
		/* or it left ahead */
		uint32_t ahead = wf_get(k->tx.c->lanes[0].streams) > 1 ? AHEAD_STRIPED : AHEAD_MOST;
		if (a->ended == k->refuse_at && done)
			CHECK(rc == CODE_USAGE || (!rc && g.m[i].size <= ahead), "refused send ends with %d", rc);
		else if (rc) {
			CHECK(k->expect_fault, "test returned %d", rc);
			a->dead = rc;
		}
		else CHECK(!done || (uint32_t)size == g.m[i].size, "%d bytes sent of %u", size, g.m[i].size);
		if (done) *r = NULL;
		else left = 1;
	}
	if (!left && !a->dead) a->ended++;
}

static void verify_group(struct actor* a, struct group* g) {
	struct conn* k = a->conn;
	for (uint32_t i = 0; i < g->n && !k->untouched; i++)
		verify(place(a, a->ended, i), g->m[i].size, content(k, a->ended, i), 0xa5);
}

/* One call of the receiving host. */
static void step_rx(struct actor* a) {
	struct conn* k = a->conn;
	struct group g;
	if (a->issued < k->groups && a->issued - a->ended < WINDOW) {
		plan(k, a->issued, &g);
		void *data[WF_GROUP], *mrs[WF_GROUP], *r = (void*)1;
		size_t sizes[WF_GROUP];
		int tags[WF_GROUP];
		for (uint32_t i = 0; i < g.n; i++) {
			data[i] = place(a, a->issued, i);
			mrs[i] = a->mr;
			sizes[i] = g.m[i].cap;
			tags[i] = g.m[i].tag;
			if (!k->untouched) memset(data[i], 0xa5, g.m[i].cap + 32);
		}
		int rc = weft_irecv(a->handle, (int)g.n, data, sizes, tags, mrs, NULL, &r);
		if (rc) {
			CHECK(k->expect_fault, "irecv returned %d", rc);
			a->dead = rc;
		} else if (r) {
			a->req[a->issued++ % WINDOW][0] = r;
			return;
		}
	}
	if (a->dead || a->ended == a->issued) return;
	int done = 0, got[WF_GROUP] = {0};
	void** r = a->flush ? &a->flush : &a->req[a->ended % WINDOW][0];
	int rc = test(k, *r, &done, got);
	plan(k, a->ended, &g);
	if (r == &a->flush) {
		if (rc) {
			CHECK(k->expect_fault, "test of a flush returned %d", rc);
			a->dead = rc;
		} else if (done) {
			a->flush = NULL;
			verify_group(a, &g);
		}
	} else if (rc) {
		CHECK(k->expect_fault || (a->ended == k->refuse_at && rc == CODE_USAGE && done), "test returned %d", rc);
		if (!done) a->dead = rc;
	} else if (done) {
		CHECK(a->ended != k->refuse_at, "a refused group is done");
		void *data[WF_GROUP], *mrs[WF_GROUP];
		for (uint32_t i = 0; i < g.n; i++) {
			CHECK((uint32_t)got[i] == g.m[i].size, "%d bytes arrived of %u", got[i], g.m[i].size);
			data[i] = place(a, a->ended, i);
			mrs[i] = a->mr;
		}
		rc = weft_iflush(a->handle, (int)g.n, data, got, mrs, &a->flush);
		if (rc) {
			CHECK(k->expect_fault, "iflush returned %d", rc);
			a->dead = rc;
		} else if (!a->flush) verify_group(a, &g);
	}
	if (done && !a->flush) a->ended++;
}

static int over(struct actor* a) { return a->dead || a->ended == a->conn->groups; }

static void* host(void* seed) {
	uint64_t s = (uint64_t)(uintptr_t)seed;
	double end = now() + 120;
	for (int all = 0; !all;) {
		all = 1;
		for (int i = 0; i < CONNS * 2; i++) {
			struct actor* a = i % 2 ? &conns[i / 2].rx : &conns[i / 2].tx;
			int steps = (int)(draw(&s) % 8);
			if (pthread_mutex_trylock(&a->mu)) {
				all = 0;
				continue;
			}
			while (steps-- && !over(a)) (i % 2 ? step_rx : step_tx)(a);
			all &= over(a);
			pthread_mutex_unlock(&a->mu);
		}
		CHECK(now() < end, "no end");
	}
	return NULL;
}

/* The proxy service: gates of living comms, and registrations that come and go. */
static void* service(void* seed) {
	uint64_t s = (uint64_t)(uintptr_t)seed;
	while (!wf_load(stop)) {
		struct conn* k = &conns[draw(&s) % CONNS];
		struct wf_comm* c = draw(&s) % 2 ? k->tx.c : k->rx.c;
		struct wf_mr* mr = wf_mr_at(next_mr);
		void* h = register_memory(&s, sizeof s, next_mr);
		/* shares are cut anew all the time */
		for (int l = 0; l < WF_LANES; l++) wf_store(c->gauge[l].weight, (uint32_t)(draw(&s) % 65536));
		for (int p = 0; p < WF_ORDER; p++) {
			wf_store(c->order[p].lane, (uint32_t)(draw(&s) % WF_LANES));
			wf_store(c->order[p].timed, (uint32_t)(draw(&s) % 2));
		}
		wf_store(c->places, (uint32_t)(draw(&s) % WF_ORDER + 1));
		hold(c);
		if (wf_get(c->lanes[0].streams) && wf_get(c->kind) == WF_KIND_SEND) { /* small sends end before they leave */
			wf_store(c->coalesce, (uint32_t)(draw(&s) % 2));
			if (!(uint32_t)wf_load(c->error)) wf_coalesced_write(c);
		}
		CHECK(!wf_comm_uses(c, (uint64_t)(uintptr_t)h), "used?");
		if (draw(&s) % 8 == 0) usleep(200);
		wf_hold_end(c);
		wf_store(mr->gen, 0u);
		CHECK(!wf_mr_lookup((uint64_t)(uintptr_t)h), "closed");
		sched_yield();
	}
	return NULL;
}

static void threads(uint64_t seed, void* (*extra)(void*)) {
	pthread_t t[3];
	pthread_create(&t[0], NULL, host, (void*)(uintptr_t)(seed + 1));
	pthread_create(&t[1], NULL, host, (void*)(uintptr_t)(seed + 2));
	pthread_create(&t[2], NULL, extra, (void*)(uintptr_t)(seed + 3));
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	wf_store(stop, 1u);
	pthread_join(t[2], NULL);
}

/* Memory of an actor, in whole pages: devices register it. */
#define MEMORY ((WINDOW * (size_t)ROOM + 4095) / 4096 * 4096)
static unsigned char* memory(void) {
	void* p = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED, "memory");
	return p;
}

/* Makes every connection; lanes makes both comms and their lanes. */
static void connect_all(uint64_t seed, uint64_t groups, void (*lanes)(int i)) {
	memset(conns, 0, sizeof conns);
	for (int i = 0; i < CONNS; i++) {
		struct conn* k = &conns[i];
		struct actor* ends[2] = {&k->tx, &k->rx};
		k->seed = mix(seed + (uint64_t)i);
		k->groups = groups;
		k->refuse_at = UINT64_MAX;
		for (int e = 0; e < 2; e++) {
			pthread_mutex_init(&ends[e]->mu, NULL);
			ends[e]->conn = k;
			ends[e]->mem = memory();
			ends[e]->mr = register_memory(ends[e]->mem, MEMORY, (uint32_t)(2 * i + e));
		}
		lanes(i);
		for (int e = 0; e < 2; e++) ends[e]->handle = (void*)(uintptr_t)wf_comm_open(ends[e]->c);
	}
	next_mr = 2 * CONNS;
	wf_store(stop, 0u);
}

static void close_end(struct actor* a, void (*detach)(struct actor* a)) {
	hold(a->c);
	wf_comm_close(a->c);
	wf_hold_end(a->c);
	CHECK(!wf_comm_lookup((uint64_t)(uintptr_t)a->handle), "closed");
	detach(a);
	wf_comm_free(a->c);
	munmap(a->mem, MEMORY);
	void* r = NULL;
	int done;
	CHECK(weft_isend(a->handle, NULL, 0, 0, NULL, NULL, &r) == 3 && !r, "isend on a closed comm");
	CHECK(a->ended == a->issued || !a->req[a->ended % WINDOW][0] ||
		weft_test(a->req[a->ended % WINDOW][0], &done, NULL) == 3, "test after close");
}

/* Closes every connection; detach takes the lanes of a closed comm off. */
static void close_all(void (*detach)(struct actor* a)) {
	for (int i = 0; i < CONNS; i++) {
		close_end(&conns[i].tx, detach);
		close_end(&conns[i].rx, detach);
	}
}

#endif
