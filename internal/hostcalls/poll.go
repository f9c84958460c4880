package hostcalls

/*
#define _GNU_SOURCE // RUSAGE_THREAD
#include <pthread.h>
#include <sys/resource.h>
#include "fastpath.h"

struct poller {
	uintptr_t listen, other;
	int polls, turns, moves;
	int waits;
	long slept;
};

static long sleeps(void) { // of this thread
	struct rusage u;
	return getrusage(RUSAGE_THREAD, &u) ? -1 : u.ru_nvcsw;
}

static void* polls(void* of) {
	struct poller* p = of;
	void* comm;
	int done;
	if (p->moves) weft_test((void*)1, &done, NULL);
	const long before = sleeps();
	for (int turn = 0; turn < p->turns; turn++) {
		if (p->other) p->waits += weft_accept_waits(p->other, &comm);
		for (int i = 0; i < p->polls; i++) p->waits += weft_accept_waits(p->listen, &comm);
	}
	p->slept = sleeps() - before;
	return NULL;
}

static int run_poller(struct poller* p) {
	pthread_t t;
	int rc = pthread_create(&t, NULL, polls, p);
	return rc ? rc : pthread_join(t, NULL);
}
*/
import "C"

import "syscall"

// Poller is a thread that polls listens.
type Poller struct {
	Listen uint64
	Other  uint64 // polled once before each turn; 0: none
	Polls  int    // of Listen, in a turn
	Turns  int
	Moves  bool // it has called the executor before, as a thread that moves data does
}

// Run polls on a thread of its own. waits: polls that found nothing; slept: how often the thread slept meanwhile.
func (p Poller) Run() (waits, slept int, err error) {
	c := C.struct_poller{listen: C.uintptr_t(p.Listen), other: C.uintptr_t(p.Other), polls: C.int(p.Polls), turns: C.int(p.Turns)}
	if p.Moves {
		c.moves = 1
	}
	if rc := C.run_poller(&c); rc != 0 {
		return 0, 0, syscall.Errno(rc)
	}
	return int(c.waits), int(c.slept), nil
}
