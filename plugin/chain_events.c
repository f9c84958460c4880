/* chain_events.c: an event that several profilers are told of. Each gives it a handle of its own; the host's handle is
 * a number that finds them all, for the calls about the event and for the events below it. Like a record's position it
 * is nothing that anybody follows: one that is stale, NULL or of another process finds nothing.
 *
 * NCCL does not say when it has named an event as a parent for the last time: a collective has stopped, that is, been
 * enqueued, before its proxy begins. So an event that has stopped keeps its place until many others have stopped after
 * it; those that come once an operation have a pool of their own, as they have children the longest. */
#include "profile.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define PLACE_BITS 20
#define PLACES (1u << PLACE_BITS)
#define NOBODY UINT32_MAX
#define OPERATIONS \
	(ncclProfileGroup | ncclProfileColl | ncclProfileP2p | ncclProfileGroupApi | ncclProfileCollApi | \
		ncclProfileP2pApi | ncclProfileKernelLaunch | ncclProfileCeColl)

/* handle, own and of are read without the lock: handle is 0 while they are written. */
struct event {
	_Atomic uint64_t handle;
	_Atomic uint64_t own; /* in our record */
	_Atomic uint64_t of[CHAIN_MAX];
	uint64_t turn; /* how often the place was given */
	uint32_t next;
	bool stopped;
};

/* The places from first on, of which used have been given before; head to tail are those that have stopped. */
struct pool {
	pthread_mutex_t lock;
	uint32_t first, size, rest; /* rest: how many stay stopped before one is given anew */
	uint32_t used, idle, head, tail;
	uint32_t taken; /* where events that never stop are forgotten next */
};

static struct event* events; /* PLACES of them, of which memory has those that were given */
static struct pool operations = {.lock = PTHREAD_MUTEX_INITIALIZER, .size = PLACES / 2, .rest = 1 << 16,
	.head = NOBODY, .tail = NOBODY};
static struct pool steps = {.lock = PTHREAD_MUTEX_INITIALIZER, .first = PLACES / 2, .size = PLACES / 2, .rest = 1 << 14,
	.head = NOBODY, .tail = NOBODY};
static _Atomic uint64_t forgotten;

struct handles {
	uint64_t own, of[CHAIN_MAX];
};

int weft_chain_room(void) {
	events = calloc(PLACES, sizeof *events);
	return events ? 0 : ENOMEM;
}

static struct event* at(uint64_t handle) { return &events[handle & (PLACES - 1)]; }

/* What an event's profilers call it. All are 0 for a handle that is not, or no longer, an event's. */
static struct handles find(uint64_t handle) {
	struct handles h = {0};
	struct event* e = at(handle);
	if (!handle || atomic_load_explicit(&e->handle, memory_order_acquire) != handle) return h;
	h.own = atomic_load_explicit(&e->own, memory_order_relaxed);
	for (int i = 0; i < CHAIN_MAX; i++) h.of[i] = atomic_load_explicit(&e->of[i], memory_order_relaxed);
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&e->handle, memory_order_relaxed) != handle) h = (struct handles){0};
	return h;
}

/* Whoever wants an event of a type is told of those above it, too, which it names as parents: NCCL does the same. */
static uint64_t with_children(uint64_t type) {
	const uint64_t steps_of = ncclProfileProxyStep | ncclProfileNetPlugin;
	const uint64_t task = ncclProfileProxyOp | steps_of | ncclProfileKernelCh | ncclProfileKernelPhase;
	const uint64_t copies = ncclProfileCeColl | ncclProfileCeSync | ncclProfileCeBatch;
	switch (type) {
	case ncclProfileGroupApi:
		return type | ncclProfileCollApi | ncclProfileP2pApi | ncclProfileKernelLaunch | ncclProfileGroup |
			ncclProfileColl | ncclProfileP2p | task | copies;
	case ncclProfileCollApi: return type | ncclProfileColl | task | copies;
	case ncclProfileP2pApi: return type | ncclProfileP2p | task;
	case ncclProfileGroup: return type | ncclProfileColl | ncclProfileP2p | task;
	case ncclProfileColl:
	case ncclProfileP2p: return type | task;
	case ncclProfileProxyOp: return type | steps_of;
	case ncclProfileProxyStep: return steps_of;
	case ncclProfileKernelCh: return type | ncclProfileKernelPhase;
	case ncclProfileCeColl: return copies;
	default: return type;
	}
}

static bool wants(int mask, uint64_t type) { return (uint64_t)(unsigned)mask & with_children(type); }

/* Whether a profiler is told of a type of events of a communicator. */
static bool told(const struct chain_comm* c, int i, uint64_t type) {
	const struct chained* p = &weft_chain[i];
	/* A proxy's thread may outlive the communicator whose context it has. */
	if (atomic_load_explicit(&c->ended, memory_order_acquire)) return false;
	return !c->of[i].refused && (p->as->kinds & type) && wants(__atomic_load_n(&p->mask, __ATOMIC_RELAXED), type);
}

static struct pool* pool_of(uint64_t type) { return type & OPERATIONS ? &operations : &steps; }

/* The place of a new event, and its handle. Hosts forget to stop some: NCCL loses the handles of steps that it begins
 * again. Where every place has an event that has not stopped, one is forgotten. */
static struct event* take(uint64_t type, uint64_t* handle) {
	const uint64_t turns = (1ull << (TYPE_SHIFT - PLACE_BITS)) - 1;
	struct pool* p = pool_of(type);
	struct event* e;
	pthread_mutex_lock(&p->lock);
	if (p->idle > p->rest || (p->idle && p->used == p->size)) {
		e = &events[p->head];
		p->head = e->next;
		if (!--p->idle) p->tail = NOBODY;
	} else if (p->used < p->size) {
		e = &events[p->first + p->used++];
	} else {
		e = &events[p->first + p->taken++ % p->size];
		atomic_fetch_add_explicit(&forgotten, 1, memory_order_relaxed);
	}
	e->stopped = false;
	e->turn = (e->turn + 1) & turns;
	atomic_store_explicit(&e->handle, 0, memory_order_relaxed);
	*handle = (uint64_t)(weft_profile_number(type) + 1) << TYPE_SHIFT | e->turn << PLACE_BITS | (uint64_t)(e - events);
	pthread_mutex_unlock(&p->lock);
	return e;
}

/* An event has stopped: its place waits for its turn. A host may stop one twice, and one whose place is another's. */
static void release(struct event* e, uint64_t handle) {
	struct pool* p = e - events < (ptrdiff_t)steps.first ? &operations : &steps;
	pthread_mutex_lock(&p->lock);
	if (!e->stopped && atomic_load_explicit(&e->handle, memory_order_relaxed) == handle) {
		e->stopped = true;
		e->next = NOBODY;
		uint32_t place = (uint32_t)(e - events);
		if (p->tail == NOBODY) p->head = place;
		else events[p->tail].next = place;
		p->tail = place;
		p->idle++;
	}
	pthread_mutex_unlock(&p->lock);
}

static void publish(struct event* e, uint64_t handle, const struct handles* h) {
	atomic_thread_fence(memory_order_release); /* after handle was cleared */
	atomic_store_explicit(&e->own, h->own, memory_order_relaxed);
	for (int i = 0; i < CHAIN_MAX; i++) atomic_store_explicit(&e->of[i], h->of[i], memory_order_relaxed);
	atomic_store_explicit(&e->handle, handle, memory_order_release);
}

/* The other handle that a descriptor may have beside its parent's. */
static void** group_of(ncclProfilerEventDescr_cur_t* d) {
	if (d->type == ncclProfileColl) return &d->coll.parentGroup;
	if (d->type == ncclProfileP2p) return &d->p2p.parentGroup;
	return NULL;
}

static bool is_group(const void* handle) {
	return (uintptr_t)handle >> TYPE_SHIFT == weft_profile_number(ncclProfileGroup) + 1u;
}

static ncclProfilerEventDescr_cur_t below(const ncclProfilerEventDescr_cur_t* d, uint64_t parent, uint64_t group) {
	ncclProfilerEventDescr_cur_t own = *d;
	void** place = group_of(&own);
	own.parentObj = (void*)(uintptr_t)parent;
	if (place) *place = (void*)(uintptr_t)group;
	return own;
}

void weft_chain_start(uintptr_t context, uintptr_t* handle, ncclProfilerEventDescr_cur_t* d) {
	const struct chain_comm* c = weft_chain_comm(context);
	*handle = 0;
	if (!c) return;
	void** group_place = group_of(d);
	struct handles parent = find((uintptr_t)d->parentObj);
	/* A host that has no calls gives the group as the parent. */
	struct handles group = group_place && !is_group(d->parentObj) ? find((uintptr_t)*group_place) : parent;
	/* The parent of another process (PXN) is that process's to know: each profiler gets the number as it came. In our
	 * record it would be taken for a position, and here for an event of this process, which has one of that number. */
	if (d->type == ncclProfileProxyOp && d->proxyOp.pid != getpid()) {
		parent.own = 0;
		for (int i = 0; i < CHAIN_MAX; i++) parent.of[i] = (uintptr_t)d->parentObj;
	}
	struct handles h = {0};
	uint64_t any = 0, given = 0;
	struct event* e = take(d->type, &given);
	if (wants(c->own, d->type)) {
		ncclProfilerEventDescr_cur_t own = below(d, parent.own, group.own);
		uintptr_t ours = 0;
		weft_profile_start(context, &ours, &own);
		any = h.own = ours;
	}
	weft_chain_about(c);
	for (int i = 0; i < weft_chain_length; i++) {
		if (!told(c, i, d->type)) continue;
		ncclProfilerEventDescr_cur_t its = below(d, parent.of[i], group.of[i]);
		uintptr_t theirs = 0, its_context = atomic_load_explicit(&c->of[i].context, memory_order_relaxed);
		if (weft_chain[i].as->startEvent(weft_chain[i].table, its_context, &theirs, &its)) continue;
		h.of[i] = theirs;
		any |= theirs;
	}
	publish(e, given, &h);
	if (any) *handle = given;
	else release(e, given); /* nobody wants to hear of it again */
}

void weft_chain_stop(uintptr_t handle) {
	struct handles h = find(handle);
	for (int i = 0; i < weft_chain_length; i++) {
		if (h.of[i]) weft_chain[i].as->stopEvent(weft_chain[i].table, h.of[i]);
	}
	if (h.own) weft_profile_stop(h.own);
	if (handle) release(at(handle), handle);
}

void weft_chain_state(uintptr_t handle, ncclProfilerEventState_cur_t state, ncclProfilerEventStateArgs_cur_t* args) {
	struct handles h = find(handle);
	for (int i = 0; i < weft_chain_length; i++) {
		if (h.of[i]) weft_chain[i].as->recordEventState(weft_chain[i].table, h.of[i], state, args);
	}
	if (h.own) weft_profile_state(h.own, state, args);
}

uint64_t weft_chain_forgotten(void) { return atomic_load_explicit(&forgotten, memory_order_relaxed); }
