/* gates.c: what a call does when the gate it meets is another comm's by then, stays held, or was its thread's before that ended.
 * Every step is taken on purpose: no luck decides.  gates */
#include "harness.h"

#include <pthread.h>
#include <sys/syscall.h>

/* The clock and the yield of the C under test: from skip on, every yield takes a while, and held is what happens meanwhile. */
static uint64_t skipped;
static uint32_t skip, yields, let_go;
static struct wf_comm* held;

int clock_gettime(clockid_t id, struct timespec* t) {
	int rc = (int)syscall(SYS_clock_gettime, id, t);
	t->tv_sec += (time_t)wf_load(skipped);
	return rc;
}

int sched_yield(void) {
	syscall(SYS_sched_yield);
	if (!wf_load(skip)) return 0;
	wf_store(skipped, wf_load(skipped) + wf_load(skip));
	if (++yields == let_go) wf_hold_end(held);
	return 0;
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

static uint32_t faults[WF_FAULT_HELD + 1];

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
		CHECK(wf_begin("isend", WF_KIND_SEND, next, &request, &rc) == (next_code ? NULL : slab) && rc == next_code, "the next comm: code %d", rc);
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
	return weft_iflush(h, 1, &d, &size, &m, request);
}

/* A flush cannot say "not now": it waits for a holder, but not for ever. */
static void waits(void) {
	void *h, *request = (void*)1;
	held = opened(WF_KIND_RECV, &h);
	CHECK(wf_hold_try(held), "held");
	wf_store(skip, 1u);
	yields = 0, let_go = 10; /* as long as a holder waits for a stuck thread */
	CHECK(flush(h, &request) == 0 && !request && yields == 10, "a flush that waited %u s", yields);
	CHECK(!faults[WF_FAULT_HELD], "a holder that is slow ended the comm");

	CHECK(wf_hold_try(held), "held");
	yields = let_go = 0;
	CHECK(flush(h, &request) == 6 && faults[WF_FAULT_HELD] == 1, "a gate that stays held");
	CHECK(yields >= 11, "the core gives up after 10 s, the flush did after %u", yields);
	uint32_t were = yields;
	CHECK(flush(h, &request) == 6 && faults[WF_FAULT_HELD] == 1 && yields == were, "a comm that has failed is waited for");
	wf_store(skip, 0u);
	wf_hold_end(held);
	CHECK(flush(h, &request) == 6, "a comm that has failed");
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
	void* request = (void*)1;
	shared = opened(WF_KIND_RECV, &shared_handle);
	wf_store(turn, 0u);
	pthread_create(&other, NULL, stopped, NULL);
	await(1);
	wf_store(skip, 1u);
	CHECK(flush(shared_handle, &request) == 6 && faults[WF_FAULT_HELD] == 2, "an owner that stays inside");
	wf_store(skip, 0u);
	wf_store(turn, 2u);
	pthread_join(other, NULL);
	closed(shared);
}

int main(void) {
	tcp_pair(fds);
	alarm(60);
	reuse();
	record();
	waits();
	owned();
	printf("ok reuse, record, waits, owned\n");
	return 0;
}
