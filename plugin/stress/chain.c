/* chain.c: threads begin and end events that two chained profilers are told of, under parents of their own, while
 * others name handles that may have been given anew. Each profiler must get the handles and parents that it gave, and
 * hear of every event. Arguments: seed and rounds. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile.h"

#include "check.h"

#define THREADS 6
#define STEPS 40
#define MAGIC 0x57656674

/* What both profilers keep of an event, for good: a host may name it at any time. */
struct known {
	uint32_t magic;
	int profiler, id;
};

#define IDS (1 << 22)

static struct known all[2][IDS];
static uint64_t told[2]; /* events that have begun */
static uintptr_t foreign; /* the parent of an event of another process, which nobody may follow */

/* rank is the event's id, and what else a type has says which parent it must have. */
static int start(const void* table, uintptr_t context, uintptr_t* handle, ncclProfilerEventDescr_cur_t* d) {
	int profiler = (int)context;
	CHECK(table == told, "table %p", table);
	struct known* parent = d->parentObj;
	int of = 0;
	if (foreign) CHECK((uintptr_t)parent == foreign, "event %d has the parent %p", d->rank, d->parentObj);
	if (d->type == ncclProfileProxyOp) of = d->proxyOp.nSteps;
	if (d->type == ncclProfileProxyStep) of = d->proxyStep.step;
	if (of) {
		CHECK(parent && parent->magic == MAGIC, "event %d has the parent %p", d->rank, d->parentObj);
		CHECK(parent->profiler == profiler && parent->id == of, "event %d is below %d of profiler %d, not %d of %d",
			d->rank, parent->id, parent->profiler, of, profiler);
	}
	CHECK(d->rank < IDS, "%d events are too many", d->rank);
	struct known* k = &all[profiler][d->rank];
	*k = (struct known){.magic = MAGIC, .profiler = profiler, .id = d->rank};
	*handle = (uintptr_t)k;
	__atomic_add_fetch(&told[profiler], 1, __ATOMIC_RELAXED);
	return 0;
}

static int stop(const void* table, uintptr_t handle) {
	CHECK(table == told && ((struct known*)handle)->magic == MAGIC, "stopped %#lx", (unsigned long)handle);
	return 0;
}

static int state(const void* table, uintptr_t handle, ncclProfilerEventState_cur_t s,
		ncclProfilerEventStateArgs_cur_t* args) {
	CHECK(table == told && !args, "state %d", (int)s);
	CHECK(((struct known*)handle)->magic == MAGIC, "state %d of %#lx", (int)s, (unsigned long)handle);
	return 0;
}

static const struct weft_chain_profiler version = {.kinds = ~0ull, .startEvent = start, .stopEvent = stop,
	.recordEventState = state};

/* Our own record has the turn's number alone. */
void weft_profile_start(uintptr_t context, uintptr_t* handle, ncclProfilerEventDescr_cur_t* d) {
	CHECK(context == 1 && (uintptr_t)d->parentObj >> 32 == 0, "context %lu", (unsigned long)context);
	CHECK(!foreign || !d->parentObj, "another process's parent is taken for our event %p", d->parentObj);
	*handle = (uintptr_t)(unsigned)d->rank;
}
void weft_profile_stop(uintptr_t handle) { CHECK(handle && handle >> 32 == 0, "stopped"); }
void weft_profile_state(uintptr_t handle, ncclProfilerEventState_cur_t s, ncclProfilerEventStateArgs_cur_t* args) {
	CHECK(handle && handle >> 32 == 0 && !args, "state %d", (int)s);
}
uint8_t weft_profile_number(uint64_t type) { return (uint8_t)__builtin_ctzll(type); }
void weft_chain_refused(int i, int result, uintptr_t logger) { CHECK(!logger, "%d refused with %d", i, result); }
void weft_chain_ended(void) {}

static uintptr_t seen[64]; /* handles that any thread may name */
static int ids;

static uintptr_t begin(uint64_t type, uintptr_t parent, int of, int* id) {
	ncclProfilerEventDescr_cur_t d = {.type = type, .parentObj = (void*)parent};
	uintptr_t handle = 0;
	*id = d.rank = __atomic_add_fetch(&ids, 1, __ATOMIC_RELAXED);
	if (type == ncclProfileProxyOp) {
		d.proxyOp.pid = getpid();
		d.proxyOp.nSteps = of;
	} else if (type == ncclProfileProxyStep) {
		d.proxyStep.step = of;
	}
	weft_chain_start(1, &handle, &d);
	CHECK(handle, "event %d of %#llx was refused", d.rank, (unsigned long long)type);
	__atomic_store_n(&seen[(unsigned)d.rank % 64], handle, __ATOMIC_RELAXED);
	return handle;
}

static void* work(void* rounds) {
	unsigned random = (unsigned)__atomic_add_fetch(&ids, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < *(int*)rounds * 400; i++) {
		int coll, op, step;
		uintptr_t c = begin(ncclProfileColl, 0, 0, &coll);
		weft_chain_stop(c); /* enqueued */
		uintptr_t o = begin(ncclProfileProxyOp, c, coll, &op);
		for (int n = 0; n < STEPS; n++) {
			uintptr_t s = begin(ncclProfileProxyStep, o, op, &step);
			weft_chain_state(s, ncclProfilerProxyStepSendWait, NULL);
			weft_chain_stop(s);
			uintptr_t another = __atomic_load_n(&seen[rand_r(&random) % 64], __ATOMIC_RELAXED);
			weft_chain_state(another, ncclProfilerProxyStepSendWait, NULL);
		}
		weft_chain_stop(o);
		weft_chain_stop(o); /* which a host may */
	}
	return NULL;
}

int main(int argc, char** argv) {
	int rounds = argc > 2 ? atoi(argv[2]) : 1;
	CHECK(weft_chain_room() == 0 && weft_chain_begin(1, 0xffff, -1, 7, "stress", 1, 1, 0, 0) == 0, "no memory");
	for (int i = 0; i < 2; i++) {
		weft_chain[i] = (struct chained){.as = &version, .table = told, .mask = 0xffff};
		weft_chain_comm(1)->of[i].context = (uintptr_t)i;
	}
	weft_chain_length = 2;
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, work, &rounds) == 0, "thread %d", i);
	for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
	uint64_t events = (uint64_t)THREADS * (uint64_t)rounds * 400 * (2 + STEPS);
	for (int i = 0; i < 2; i++)
		CHECK(told[i] == events, "told of %lu of %lu events", (unsigned long)told[i], (unsigned long)events);
	CHECK(!weft_chain_forgotten(), "%lu forgotten", (unsigned long)weft_chain_forgotten());
	/* Another process numbers its events as this one does: what is a parent there may be the number of one here. */
	int id;
	foreign = begin(ncclProfileColl, 0, 0, &id);
	ncclProfilerEventDescr_cur_t its = {.type = ncclProfileProxyOp, .parentObj = (void*)foreign, .rank = ++ids,
		.proxyOp = {.pid = getpid() + 1}};
	uintptr_t op = 0;
	weft_chain_start(1, &op, &its);
	CHECK(op, "the event of another process is refused");
	weft_chain_stop(op);
	foreign = 0;
	events += 2;
	/* A host that stops nothing is heard all the same. */
	uintptr_t newest = 0, first = begin(ncclProfileProxyStep, 0, 0, &id);
	for (int i = 0; i < 600000; i++) newest = begin(ncclProfileProxyStep, 0, 0, &id);
	CHECK(weft_chain_forgotten() && newest != first, "none was forgotten");
	weft_chain_stop(first); /* whose place another event has */
	weft_chain_state(newest, ncclProfilerProxyStepSendWait, NULL);
	CHECK(told[0] == events + 600001, "told of %lu", (unsigned long)told[0]);
	printf("chain: %lu events\n", (unsigned long)events);
	return 0;
}
