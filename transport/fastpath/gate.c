/* gate.c: thread records, the gate's slow sides (joining, moving a comm to another thread, holding) and the lists of
 * comms with unsent output. */
#define _GNU_SOURCE
#include "gate.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WF_THREADS 1024u /* records of a block */
#define WF_BLOCKS 64u
#define WF_SPINS 100u      /* looks, about a microsecond together, before the first nap */
#define WF_NAPS 2u         /* that a call takes for an owner that stays inside */

__thread struct wf_thread* wf_self __attribute__((tls_model("initial-exec")));
uint32_t wf_fenced;

static struct wf_thread wf_first[WF_THREADS] __attribute__((aligned(64)));
static struct wf_thread* wf_blocks[WF_BLOCKS] = {wf_first}; /* a block that is there stays */
static uint32_t wf_threads_top;                            /* records above were never used */
static pthread_key_t wf_thread_key;
static uint32_t wf_keyed; /* 1: the key is ours */

/* A destructor of the host's that runs later, on this thread, and calls in takes a record anew; the next round gives
 * it back. One that is taken in the last of PTHREAD_DESTRUCTOR_ITERATIONS rounds stays used. */
static void wf_thread_end(void* record) {
	struct wf_thread* t = record;
	wf_self = NULL; /* before another thread has it */
	wf_leave(t);
	wf_store(t->used, 0u);
}

int wf_thread_key_make(void) {
	if (wf_load(wf_keyed)) return 0;
	int err = pthread_key_create(&wf_thread_key, wf_thread_end);
	if (!err) wf_store(wf_keyed, 1u);
	return err;
}

/* At load time, because a host may call in before Go has started. */
__attribute__((constructor)) static void wf_gate_start(void) {
	wf_thread_key_make();
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0) wf_store(wf_fenced, 1u);
}

static struct wf_thread* wf_block(uint32_t n) {
	struct wf_thread* b = wf_load(wf_blocks[n]);
	if (b) return b;
	void* p = mmap(NULL, WF_THREADS * sizeof *b, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) return NULL;
	if (__atomic_compare_exchange_n(&wf_blocks[n], &b, (struct wf_thread*)p, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return p;
	munmap(p, WF_THREADS * sizeof *b); /* another thread was faster */
	return b;
}

/* Gives the calling thread its record; NULL when there is no memory for one, or WF_BLOCKS are full. */
struct wf_thread* wf_thread_join(void) {
	for (uint32_t i = 0; i < WF_BLOCKS * WF_THREADS; i++) {
		struct wf_thread* t = wf_block(i / WF_THREADS);
		uint32_t unused = 0;
		if (!t) break;
		t += i % WF_THREADS;
		if (wf_load(t->used) ||
				!__atomic_compare_exchange_n(&t->used, &unused, 1u, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		uint32_t top = wf_load(wf_threads_top);
		while (top <= i && !__atomic_compare_exchange_n(&wf_threads_top, &top, i + 1, 0, __ATOMIC_ACQ_REL,
				__ATOMIC_ACQUIRE))
			{}
		if (wf_load(wf_keyed)) pthread_setspecific(wf_thread_key, t); /* if not, init refuses, and there are no comms */
		return wf_self = t;
	}
	return NULL;
}

int wf_hold_try(struct wf_comm* c) {
	uint32_t free = 0;
	return __atomic_compare_exchange_n(&c->held, &free, 1u, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* Where threads enter by an exchange no barrier is needed: that exchange and the swap of held have one order. */
void wf_barrier(void) {
	if (!wf_load(wf_fenced) || syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) return;
	/* forbidden meanwhile (seccomp): entries are exchanges now, and those of before have long been seen */
	wf_store(wf_fenced, 0u);
	usleep(10000);
}

uint64_t wf_inside(uint32_t i) {
	if (i >= wf_load(wf_threads_top)) return 1;
	return __atomic_load_n(&wf_load(wf_blocks[i / WF_THREADS])[i % WF_THREADS].in_call, __ATOMIC_SEQ_CST);
}

int wf_hold_clear(struct wf_comm* c) {
	uint64_t in = 0;
	for (uint32_t i = 0; in != 1 && in != (uint64_t)(uintptr_t)c; i++) in = wf_inside(i);
	return in == 1;
}

void wf_hold_end(struct wf_comm* c) { wf_store(c->held, 0u); }

/* Between two looks at what another thread is about to finish: it may need this CPU. A nap, not sched_yield: from
 * Linux 6.18 on each yield gives a time slice away for good, and a thread that yields in a loop stands still for
 * seconds. */
static void wf_pause(uint32_t look) {
	if (look >= WF_SPINS) nanosleep(&(struct timespec){0, 20000}, NULL);
}

static void wf_lock(struct wf_thread* t) {
	for (uint32_t look = 0; __atomic_exchange_n(&t->lock, 1u, __ATOMIC_ACQUIRE);) wf_pause(look++);
}

static struct wf_comm* wf_comm_of(uint64_t word) { return (struct wf_comm*)(uintptr_t)word; }

/* Puts the comm on the thread's output list. Inside the gate. */
void wf_list(struct wf_thread* t, struct wf_comm* c) {
	if (wf_load(c->listed)) return;
	wf_lock(t);
	wf_put(c->list_next, (uint64_t)0);
	wf_put(c->list_before, wf_get(t->list_tail));
	if (wf_get(t->list_tail)) wf_put(wf_comm_of(wf_get(t->list_tail))->list_next, (uint64_t)(uintptr_t)c);
	else wf_store(t->list_head, (uint64_t)(uintptr_t)c);
	wf_put(t->list_tail, (uint64_t)(uintptr_t)c);
	wf_store(c->listed, (uint64_t)(uintptr_t)t);
	wf_store(t->lock, 0u);
}

/* Takes the comm off whatever list it stands on. Inside the gate, or with the gate held. */
void wf_unlist(struct wf_comm* c) {
	struct wf_thread* t = (struct wf_thread*)(uintptr_t)wf_load(c->listed);
	if (!t) return;
	wf_lock(t);
	struct wf_comm *before = wf_comm_of(wf_get(c->list_before)), *next = wf_comm_of(wf_get(c->list_next));
	if (before) wf_put(before->list_next, wf_get(c->list_next));
	else wf_store(t->list_head, wf_get(c->list_next));
	if (next) wf_put(next->list_before, wf_get(c->list_before));
	else wf_put(t->list_tail, wf_get(c->list_before));
	wf_store(c->listed, (uint64_t)0);
	wf_store(t->lock, 0u);
}

/* Makes the calling thread the comm's owner. 0: the gate is held, or its last owner is still inside: try later. */
int wf_adopt(struct wf_thread* t, struct wf_comm* c) {
	if (wf_load(c->held) || !wf_hold_try(c)) return 0;
	if (wf_get(c->owner)) wf_barrier(); /* without an owner nobody is inside */
	int clear;
	for (uint32_t look = 0; !(clear = wf_hold_clear(c)) && look < WF_SPINS + WF_NAPS;) wf_pause(look++);
	if (clear) {
		int listed = wf_load(c->listed) != 0;
		wf_unlist(c);
		wf_put(c->owner, (uint64_t)(uintptr_t)t);
		if (listed) wf_list(t, c);
	}
	wf_hold_end(c);
	return clear;
}
