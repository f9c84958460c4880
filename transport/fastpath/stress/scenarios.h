/* scenarios.h: what the stress drivers run over their actors. */
#ifndef WEFT_STRESS_SCENARIOS_H
#define WEFT_STRESS_SCENARIOS_H

#include "actors.h"

/* Messages of every kind beside what a third thread does; one group of every third connection is refused. */
static void run_traffic(uint64_t seed, uint64_t groups, void* (*extra)(void*)) {
	for (int i = 0; i < CONNS; i += 3) conns[i].refuse_at = 20 + (uint64_t)i;
	threads(seed, extra);
	for (int i = 0; i < CONNS; i++) {
		CHECK(conns[i].tx.ended == groups &&
			conns[i].rx.ended == groups, "conn %d ended at %lu and %lu", i, conns[i].tx.ended, conns[i].rx.ended);
		/* that each end finds */
		uint32_t large = conns[i].faults[WF_FAULT_TOO_LARGE], ahead = conns[i].faults[WF_FAULT_AHEAD];
		CHECK(conns[i].refuse_at == UINT64_MAX ? !large &&
			!ahead : large + ahead / 2 == 1, "%u and %u refusals", large, ahead);
		CHECK(!wf_get(conns[i].tx.c->outstanding) && !wf_get(conns[i].rx.c->outstanding), "slots leak");
	}
}

/* Lanes die under traffic by what killer does: every actor ends with the code, none hangs. */
static void run_death(uint64_t seed, void* (*killer)(void*)) {
	for (int i = 0; i < CONNS; i++) conns[i].expect_fault = 1;
	threads(seed, killer);
	for (int i = 0; i < CONNS; i++)
		CHECK(conns[i].tx.dead == CODE_CLOSED &&
			conns[i].rx.dead == CODE_CLOSED, "%d %d", conns[i].tx.dead, conns[i].rx.dead);
}

/* Memory is deregistered under traffic, as NCCL does before it closes: afterwards only this thread touches it. fence
 * stops an end's devices. */
static void (*fence)(struct actor* a);
static void* deregister(void* seed) {
	uint64_t s = (uint64_t)(uintptr_t)seed;
	for (int i = 0; i < CONNS; i++) {
		usleep(draw(&s) % 3000);
		struct actor* a = draw(&s) % 2 ? &conns[i].tx : &conns[i].rx;
		wf_store(wf_mr_lookup((uint64_t)(uintptr_t)a->mr)->gen, 0u);
		hold(a->c);
		int used = wf_comm_uses(a->c, (uint64_t)(uintptr_t)a->mr);
		wf_comm_fail(a->c, wf_get(a->c->gen), CODE_CLOSED);
		wf_hold_end(a->c);
		struct actor* peer = a == &conns[i].tx ? &conns[i].rx : &conns[i].tx;
		if (fence) {
			fence(a);
			fence(peer);
		}
		/* nobody writes it now */
		if (a == &conns[i].rx && used) for (uint32_t b = 0; b < 4096; b += 64) wf_put(*(uint64_t*)(a->mem + b), s);
		wf_comm_fail(peer->c, wf_get(peer->c->gen), CODE_CLOSED);
	}
	return NULL;
}
static void run_dereg(uint64_t seed, void (*stop_devices)(struct actor* a)) {
	fence = stop_devices;
	for (int i = 0; i < CONNS; i++) conns[i].expect_fault = conns[i].untouched = 1;
	threads(seed, deregister);
}

struct scenario { const char* name; void (*run)(uint64_t seed); };

/* Every scenario once a round, every other round without membarrier. */
static void run_all(int argc, char** argv, const struct scenario* all) {
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	int rounds = argc > 2 ? atoi(argv[2]) : 1;
	uint32_t fenced = wf_fenced;
	for (int i = 0; i < rounds; i++, seed++) {
		wf_store(wf_fenced, i % 2 ? 0 : fenced);
		for (const struct scenario* s = all; s->run; s++) {
			double t = now();
			s->run(seed);
			printf("ok %s seed %lu %s %.2f s\n", s->name, seed, wf_fenced ? "membarrier" : "exchange", now() - t);
		}
	}
}

#endif
