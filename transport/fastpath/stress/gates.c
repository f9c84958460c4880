/* gates.c: what a call does when the gate it meets is another comm's by then, stays held, or was its thread's before
 * that ended. Every step is taken on purpose: no luck decides.  gates */
#include "harness.h"

#include <pthread.h>
#include <sys/syscall.h>

/* The clock of the C under test, which the driver puts forward, and how often that slept. */
static uint64_t skipped; /* seconds */
static uint32_t naps;
static struct wf_comm* held;

int clock_gettime(clockid_t id, struct timespec* t) {
	int rc = (int)syscall(SYS_clock_gettime, id, t);
	t->tv_sec += (time_t)wf_load(skipped);
	return rc;
}

int nanosleep(const struct timespec* t, struct timespec* left) {
	naps++;
	return (int)syscall(SYS_nanosleep, t, left);
}

static void nothing(void) {}
static void (*before_entry)(void) = nothing; /* between the lookup of a comm and the entry of its gate */

static int enter_later(struct wf_thread* t, struct wf_comm* c) {
	before_entry();
	return wf_enter(t, c);
}
#define wf_enter enter_later /* in the calls that exec.h makes, below */
#include "../exec.h"
#undef wf_enter

static uint32_t faults[WF_FAULT_ENDED + 1];

static int fault(uint64_t cookie, const struct wf_fault* f) {
	faults[f->kind]++;
	return cookie ? 6 : 3;
}
static const struct wf_upcalls upcalls = {.fault = fault};

static int fds[2];

static struct wf_comm* opened(uint32_t kind, void** h) {
	struct wf_comm* c = comm_over(kind, fds, 1, &upcalls, 1);
	*h = (void*)(uintptr_t)wf_comm_open(c);
	return c;
}

static void closed(struct wf_comm* c) {
	hold(c);
	wf_comm_close(c);
	wf_hold_end(c);
	wf_comm_free(c);
}

/* The slab is closed, freed and opened again while a call is on its way in. */
static struct wf_comm* slab;
static void* next;
static int next_code;

static void reopen(void) {
	before_entry = nothing;
	closed(slab);
	CHECK(opened(WF_KIND_SEND, &next) == slab, "the slab was not recycled");
	if (next_code) wf_comm_fail(slab, wf_get(slab->gen), next_code);
}

static void reuse(void) {
	for (next_code = 0; next_code < 10; next_code += 9) {
		void *h, *request = (void*)1;
		int rc = 0;
		slab = opened(WF_KIND_SEND, &h);
		before_entry = reopen;
		struct wf_comm* c = wf_begin_slowly("isend", WF_KIND_SEND, h, &request, &rc);
		CHECK(!c && rc == 3 && !request, "a call on a closed comm got into the gate of the next: code %d", rc);
		CHECK(!wf_get(wf_self->in_call), "the gate was not left");
		rc = 0;
		CHECK(wf_begin("isend", WF_KIND_SEND, next, &request, &rc) == (next_code ? NULL : slab) &&
			rc == next_code, "the next comm: code %d", rc);
		wf_leave(wf_self);
		closed(slab);
	}
}

/* A thread that ends calls in once more, after its record was given to another thread. */
static pthread_key_t late; /* made after the executor's: its destructor runs after that one's */
static struct wf_comm* shared;
static void* shared_handle;
static struct wf_thread *first, *heir, *second;
static uint32_t turn;

static void await(uint32_t t) { /* until main's alarm */
	while (wf_load(turn) != t) usleep(100);
}

static void call(void) {
	void *d = NULL, *m = NULL, *request;
	size_t size = 0;
	int tag = 0;
	CHECK(weft_irecv(shared_handle, 1, &d, &size, &tag, &m, NULL, &request) == 0, "irecv");
}

static void at_end(void* unused) {
	(void)unused;
	wf_store(turn, 1u);
	await(2);
	call();
	second = wf_self;
	CHECK(second && second != heir, "two threads have one record");
	CHECK(wf_load(second->used), "a call by a thread without a record of its own");
}

static void* ends(void* unused) {
	call();
	first = wf_self;
	pthread_setspecific(late, &late);
	return unused;
}

static void* inherits(void* unused) {
	await(1);
	call();
	heir = wf_self;
	wf_store(turn, 2u);
	await(3);
	return unused;
}

static void record(void) {
	pthread_t one, other;
	CHECK(pthread_key_create(&late, at_end) == 0, "key");
	shared = opened(WF_KIND_RECV, &shared_handle);
	pthread_create(&one, NULL, ends, NULL);
	pthread_create(&other, NULL, inherits, NULL);
	pthread_join(one, NULL);
	CHECK(heir == first, "the record was not given on");
	CHECK(!wf_load(second->used) && wf_load(heir->used), "the record of the last call was not given back");
	wf_store(turn, 3u);
	pthread_join(other, NULL);
	CHECK(!wf_load(heir->used), "the heir's record was not given back");
	closed(shared);
}

static int flush(void* h, void** request) {
	void *d = &h, *m = NULL;
	int size = 8;
	*request = (void*)1;
	return weft_iflush(h, 1, &d, &size, &m, request);
}

/* A provider that flushes: with a request, without one, or not at all. */
static uint32_t landed, lands;

static int land(struct wf_comm* c, void* data, uint64_t size, void* mhandle, void** request) {
	uint32_t slot;
	CHECK(data && size == 8 && !mhandle, "another flush");
	landed++;
	if (lands == 2) return wf_raise(WF_FAULT_MR, "memory handle is not registered", 0, 0, size, 0);
	if (!lands) return 0;
	struct wf_req* r = wf_take(c, &slot, WF_SLOTS);
	CHECK(r, "no request");
	wf_put(r->n, 1u);
	wf_put(r->left, 0u);
	wf_put(r->e[0].size, (uint32_t)size);
	wf_put(r->state, (uint32_t)WF_REQ_DONE);
	*request = wf_request(c, r, slot);
	return 0;
}

static struct wf_lane_ops lander;

static struct wf_comm* opened_to_flush(void** h) {
	struct wf_comm* c = opened(WF_KIND_RECV, h);
	lander = *wf_ops(&c->lanes[0]);
	lander.land = land;
	wf_put(c->lanes[0].ops, (uint64_t)(uintptr_t)&lander);
	landed = 0;
	return c;
}

static int tested(void* request, int* done) {
	*done = 2;
	return weft_test(request, done, NULL);
}

/* A flush that meets a held gate neither waits nor is left out: its request's test begins it. */
static void later(void) {
	void *h, *request, *stale;
	int done, size = -1;
	held = opened_to_flush(&h);
	for (lands = 0; lands < 2; lands++) {
		naps = landed = 0;
		CHECK(wf_hold_try(held), "held");
		CHECK(flush(h, &request) == 0 && request && !naps && !landed, "a flush that waited");
		wf_store(skipped, wf_load(skipped) + 10); /* as long as a holder waits for a stuck thread */
		for (int i = 0; i < 3; i++) CHECK(tested(request, &done) == 0 && !done && !landed, "the gate was entered");
		wf_hold_end(held);
		done = 0;
		CHECK(weft_test(request, &done, &size) == 0 && done == 1 && landed == 1 &&
			size == 8, "a flush of a free gate: done %d, begun %u times, %d bytes", done, landed, size);
		CHECK(tested(request, &done) == 3 && !done, "a request that is done");
	}
	/* What cannot be flushed is said by its test, each time. */
	lands = 2;
	CHECK(wf_hold_try(held) && flush(h, &request) == 0 && request, "held");
	wf_hold_end(held);
	for (int i = 0; i < 2; i++) CHECK(tested(request, &done) == 6 && !done, "memory that is gone");
	CHECK(faults[WF_FAULT_MR] == 2 && !faults[WF_FAULT_HELD], "faults");

	/* There is an end to them, and no comm has another's. */
	void* all[WF_LATES];
	lands = 0;
	CHECK(wf_hold_try(held), "held");
	for (int i = 1; i < WF_LATES; i++)
		CHECK(flush(h, &all[i]) == 0 && all[i] && (i < 2 || all[i] != all[i - 1]), "flush %d", i);
	CHECK(flush(h, &stale) == 3 && !stale, "one more than there is room for");
	wf_hold_end(held);
	for (int i = 2; i < WF_LATES; i++) CHECK(tested(all[i], &done) == 0 && done == 1, "flush %d", i);
	stale = all[1];
	closed(held);
	CHECK(tested(stale, &done) == 3 && !done, "a flush of a closed comm");
	slab = held;
	CHECK((held = opened_to_flush(&h)) == slab && tested(stale, &done) == 3 &&
		!landed, "a flush of the slab's last comm");
	CHECK(wf_hold_try(held) && flush(h, &request) == 0 && request != stale &&
		tested(stale, &done) == 3, "a stale request is another's");
	wf_hold_end(held);
	CHECK(tested(request, &done) == 0 && done == 1, "the first of a new comm");
	CHECK(tested((void*)(uintptr_t)wf_handle(WF_KIND_REQUEST, 0, wf_get(held->index), WF_SLOTS + 5), &done) == 3,
		"a request that never was");
	CHECK(tested((void*)(uintptr_t)wf_handle(WF_KIND_REQUEST, 1, wf_get(held->index), WF_SLOTS + WF_LATES), &done) == 3,
		"a slot that never was");

	/* Where nothing is ever to be flushed there is nothing to come later. */
	lander.land = NULL;
	CHECK(wf_hold_try(held) && flush(h, &request) == 0 && !request, "a flush of nothing");
	wf_hold_end(held);
	closed(held);
}

/* The holder does not let go. */
static void stuck(void) {
	void *h, *request, *more;
	int done;
	held = opened_to_flush(&h);
	CHECK(wf_hold_try(held) && flush(h, &request) == 0 && request, "held");
	wf_store(skipped, wf_load(skipped) + 10);
	CHECK(tested(request, &done) == 0 && !done && !faults[WF_FAULT_HELD], "too early");
	wf_store(skipped, wf_load(skipped) + 2);
	for (int i = 0; i < 2; i++)
		CHECK(tested(request, &done) == 6 && !done && faults[WF_FAULT_HELD] == 1, "a gate that stays held");
	CHECK(flush(h, &more) == 6 && !more, "a comm that has failed");
	wf_hold_end(held);
	CHECK(tested(request, &done) == 6 && flush(h, &more) == 6 && !landed, "a comm that has failed, its gate free");
	closed(held);
}

/* The owner is stopped inside the gate, and another thread flushes. */
static void* stopped(void* unused) {
	struct wf_comm* c = NULL;
	void* request;
	for (int rc = 0; !c;) c = wf_begin("irecv", WF_KIND_RECV, shared_handle, &request, &rc);
	wf_store(turn, 1u);
	await(2);
	wf_leave(wf_self);
	return unused;
}

static void owned(void) {
	pthread_t other;
	void* request;
	int done;
	shared = opened_to_flush(&shared_handle);
	wf_store(turn, 0u);
	pthread_create(&other, NULL, stopped, NULL);
	await(1);
	naps = 0;
	CHECK(flush(shared_handle, &request) == 0 && request && naps &&
		naps <= 2, "a flush that met its owner: %u naps", naps);
	CHECK(tested(request, &done) == 0 && !done && faults[WF_FAULT_HELD] == 1, "too early");
	wf_store(skipped, wf_load(skipped) + 12);
	CHECK(tested(request, &done) == 6 && faults[WF_FAULT_HELD] == 2, "an owner that stays inside");
	wf_store(turn, 2u);
	pthread_join(other, NULL);
	closed(shared);
}

int main(void) {
	tcp_pair(fds);
	alarm(60);
	reuse();
	record();
	later();
	stuck();
	owned();
	printf("ok reuse, record, later, stuck, owned\n");
	return 0;
}
