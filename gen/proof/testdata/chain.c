/* Hands every kind of event that a version knows to a chained table of it, which is our own: what comes back to the core
 * must be what was given, as far as the version has a place for it. The test puts in the tables and the fields. Built
 * with sanitizers. Prints "ok", or the lines that failed. */
#include <stdio.h>
#include <string.h>

#include "compat.h"
#include "zz_chain.h"
/* TABLES */
#define NAME "a communicator's name"
#define HASH 0x123456789abcdef

static ncclProfilerEventDescr_cur_t given, seen;
static ncclProfilerEventStateArgs_cur_t seen_args;
static int failures, events, states;
static int of_v1; /* this version has codes instead of names */

uint32_t weft_progress_epoch;
int weft_forked(void) { return 0; }
int weft_enter(uintptr_t logger) { return (void)logger, 0; }
int weft_connect_waits(const void* handle, void** comm) { return !handle || !comm; }
int weft_accept_waits(uintptr_t listen, void** comm) { return !listen || !comm; }
int weft_null(const char* function, const char* name) { return printf("%s: %s\n", function, name), 3; }
int weft_misuse(const char* function, const char* what, uint64_t got) { return printf("%s: %s %d\n", function, what, (int)got), 3; }
int64_t weft_blocking_deadline_ms(int kind) { return kind; }

#define CHECK(condition)                                      \
	do {                                                        \
		if (!(condition)) {                                       \
			printf("v%d, event %#llx: %s\n", version, (unsigned long long)given.type, #condition);          \
			failures++;                                             \
		}                                                         \
	} while (0)

static int version;

/* What versions before 4 say with an event comes back before the event. */
static const char* said_name;
static uint64_t said_hash;
void weft_chain_says(const char* name, uint64_t hash) { said_name = name, said_hash = hash; }
const char* weft_chain_name(void) { return NAME; }
uint64_t weft_chain_hash(void) { return HASH; }
int weft_chain_steps(void) { return 12; }
static int said_steps;
void weft_chain_moves(int steps) { said_steps = steps; }
void weft_chain_know(const struct weft_chain_profiler* const* all, int count) { (void)all; (void)count; }
void weft_chain_init(uintptr_t context, int* mask) { (void)context, (void)mask; }
void weft_chain_finalize(uintptr_t context) { (void)context; }

int took_prof_init(int table, uintptr_t* context, uint64_t commId, int* eActivationMask, char* commName, int nNodes, int nranks, int rank, uintptr_t logfn) {
	CHECK(table == version);
	if (table >= 4) CHECK(commId == HASH && !strcmp(commName, NAME) && nNodes == 2 && nranks == 16 && rank == 9 && logfn == 0x77);
	*context = 70;
	*eActivationMask = 0x55;
	return 0;
}
int took_prof_startEvent(uintptr_t context, uintptr_t* eHandle, ncclProfilerEventDescr_cur_t* eDescr) {
	CHECK(context == 70);
	seen = *eDescr;
	*eHandle = 98;
	return 0;
}
int took_prof_stopEvent(uintptr_t eHandle) { return eHandle == 98 ? 0 : 3; }
int took_prof_recordEventState(uintptr_t eHandle, ncclProfilerEventState_cur_t eState, ncclProfilerEventStateArgs_cur_t* eStateArgs) {
	CHECK(eHandle == 98);
	states++;
	if (eStateArgs) seen_args = *eStateArgs;
	return (int)eState == 1000 ? 3 : 0;
}
int took_prof_finalize(uintptr_t context) { return context == 70 ? 0 : 3; }

/* Every byte of a descriptor is 1, so that a bool is one; what a version keeps as a code is a name that has one. */
static void fill(uint64_t type) {
	memset(&given, 1, sizeof given);
	given.type = type;
	given.parentObj = (void*)0x22;
	if (!of_v1) return;
	if (type == ncclProfileColl) {
		given.coll.func = weft_v1_func(4), given.coll.datatype = weft_v1_datatype(7);
		given.coll.algo = weft_v1_algo(1), given.coll.proto = weft_v1_proto(2);
	}
	if (type == ncclProfileP2p) given.p2p.func = weft_v1_func(6), given.p2p.datatype = weft_v1_datatype(0);
}

static void table(const struct weft_chain_profiler* as, const void* table) {
	uintptr_t context = 0, handle = 0;
	int mask = 0;
	version = as->version, of_v1 = version == 1;
	CHECK(!as->init(table, &context, HASH, &mask, NAME, 2, 16, 9, 0x77) && context == 70 && mask == 0x55);
	for (int bit = 0; bit < 64; bit++) {
		if (!(as->kinds >> bit & 1)) continue;
		fill(1ull << bit);
		CHECK(!as->startEvent(table, 70, &handle, &given) && handle == 98);
		CHECK(seen.type == given.type && seen.rank == given.rank);
		void* above = given.parentObj;
		if (version < 5 && given.type == ncclProfileColl) above = given.coll.parentGroup;
		if (version < 5 && given.type == ncclProfileP2p) above = given.p2p.parentGroup;
		CHECK(seen.parentObj == above);
		if (version < 4 && (given.type == ncclProfileColl || given.type == ncclProfileP2p)) {
			CHECK(said_name && !strcmp(said_name, NAME) && said_hash == HASH);
		}
		events++;
		switch ((uint64_t)version << 32 | given.type) {
/* FIELDS */
		default: break;
		}
	}
	/* A host that has no calls gives the group as both. */
	fill(ncclProfileColl);
	given.parentObj = given.coll.parentGroup = (void*)0x33;
	CHECK(!as->startEvent(table, 70, &handle, &given) && seen.parentObj == (version < 5 ? given.parentObj : NULL));
	CHECK(!as->stopEvent(table, 98) && as->stopEvent(table, 97) == 3);
	ncclProfilerEventStateArgs_cur_t args;
	memset(&args, 1, sizeof args);
	CHECK(!as->recordEventState(table, 98, ncclProfilerProxyCtrlAppend, &args) && seen_args.proxyCtrl.appendedProxyOps == 0x01010101);
	CHECK(!as->recordEventState(table, 98, ncclProfilerProxyCtrlAppend, NULL));
	/* Sizes and steps of a proxy's operation are of the versions before v4. */
	CHECK(!as->recordEventState(table, 98, ncclProfilerProxyOpRecvDone, &args));
	CHECK(version >= 4 || (seen_args.proxyStep.transSize == args.proxyStep.transSize && said_steps == 12));
	states = 0;
	CHECK(!as->recordEventState(table, 98, ncclProfilerProxyStepSendPeerWait_v4, &args) && states == (version >= 4));
	CHECK(!as->finalize(table, 70) && as->finalize(table, 71) == 3);
}

int main(void) {
	static const struct weft_chain_profiler* const all[] = weft_chain_profiler_all;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) table(all[i], tables[i]);
	if (!failures) printf("%d events, ok\n", events);
	return failures != 0;
}
