/* profile.c: what a host says of each type of event is where format.go of the recorder says, and of each state. Every
 * field has a value of its own, so that none may stand in another's place. */
#include <string.h>

#include "profile.h"
#include "record.h"

#include "nccl/profiler_net.h"

#include "check.h"

/* The recorder: two places, which are filled with ones before. A text's name is its first letter. */
static struct weft_record_file file;
struct weft_record_file* weft_record_base = &file;
static struct weft_record place[2];
static uint32_t taken, done;
static uint64_t now, repeated;
static struct weft_cause cause;

struct weft_record* weft_record_take(uint32_t n, uint64_t* at) {
	memset(place, 0xff, sizeof place);
	taken = n;
	*at = 1024 + ++now;
	return place;
}
void weft_record_done(struct weft_record* r, uint32_t n, uint64_t at) {
	CHECK(r == place && n == taken && at == 1024 + now, "%u done", n);
	done++;
}
uint32_t weft_record_text(const char* text) { return text ? (unsigned char)*text : 0; }
uint64_t weft_record_clock(void) { return now; }
int weft_record_said(uint64_t id, uint64_t what) {
	int same = repeated == (id ^ what);
	repeated = id ^ what;
	return same;
}
struct weft_cause weft_record_cause(void) { return cause; }

/* There are no further profilers. */
int weft_chain_length;
void weft_chain_start(uintptr_t context, uintptr_t* handle, ncclProfilerEventDescr_cur_t* d) {
	(void)d;
	CHECK(0, "chained: %lu, %p", (unsigned long)context, (void*)handle);
}
void weft_chain_stop(uintptr_t handle) { CHECK(0, "chained: %lu", (unsigned long)handle); }
void weft_chain_state(uintptr_t handle, ncclProfilerEventState_cur_t state, ncclProfilerEventStateArgs_cur_t* args) {
	(void)args;
	CHECK(0, "chained: %lu, state %d", (unsigned long)handle, (int)state);
}

int weft_prof_startEvent(uintptr_t context, uintptr_t* handle, ncclProfilerEventDescr_cur_t* d);
int weft_prof_stopEvent(uintptr_t handle);
int weft_prof_recordEventState(uintptr_t handle, ncclProfilerEventState_cur_t s,
	ncclProfilerEventStateArgs_cur_t* args);

#define AT(n) ((void*)(uintptr_t)(n))
#define TWO(low, high) ((low) | (uint64_t)(high) << 32)

struct event {
	const char* name;
	ncclProfilerEventDescr_cur_t d;
	uint32_t flags;
	uint64_t a, b, c, more[7];
	uint32_t records;
};

static ncclProfilerNetIbDescr_v1_t qp = {.type = ncclProfileQp,
	.qp = {.device = 1, .wr_id = 0x123456789abc, .opcode = 2, .qpNum = 0xfedcba, .length = 1ull << 33}};
static ncclProfilerNetSockDescr_v1_t sock = {.type = ncclProfileSocket,
	.sock = {.fd = 7, .op = 1, .length = 1ull << 34}};
#define IB (NCCL_PROFILER_NET_TYPE_IB | NCCL_PROFILER_NET_IB_VER)
#define SOCKET (NCCL_PROFILER_NET_TYPE_SOCK | NCCL_PROFILER_NET_SOCKET_VER)

#define HOST .parentObj = AT(0x5e), .rank = 3
static const struct event events[] = {
	{"Group", {HOST, .type = ncclProfileGroup}, .records = 1},
	{"GroupApi", {HOST, .type = ncclProfileGroupApi, .groupApi = {true, 2}}, .flags = 1, .a = 2, .records = 1},
	{"CollApi", {HOST, .type = ncclProfileCollApi, .collApi = {"F", 1ull << 40, "D", 5, AT(6), true, 77}},
		.flags = 1, .a = 1ull << 40, .b = 6, .c = 77, .more = {TWO('F', 'D'), 5}, .records = 2},
	{"P2pApi", {HOST, .type = ncclProfileP2pApi, .p2pApi = {"F", 1ull << 41, "D", AT(6), true, 78}},
		.flags = 1, .a = 1ull << 41, .b = 6, .c = 78, .more = {TWO('F', 'D')}, .records = 2},
	{"KernelLaunch", {HOST, .type = ncclProfileKernelLaunch, .kernelLaunch = {AT(9)}}, .b = 9, .records = 1},
	{"Coll", {HOST, .type = ncclProfileColl, .coll = {.seqNumber = 1ull << 35, .func = "F", .sendBuff = AT(11),
			.recvBuff = AT(12), .count = 1ull << 36, .root = 4, .datatype = "D", .nChannels = 32, .nWarps = 16,
			.algo = "A", .proto = "P", .parentGroup = AT(13), .kernelVariant = "K", .isSymColl = true, .userTag = 79}},
		.a = 1ull << 35, .b = 1ull << 36, .c = 79, .records = 2,
		.more = {TWO('F', 'D'), TWO('A', 'P'), TWO(4, 32 | 16 << 8 | 1 << 16), 11, 12, 13, 'K'}},
	{"P2p", {HOST, .type = ncclProfileP2p, .p2p = {"F", AT(14), "D", 1ull << 37, 6, 8, AT(15), 80}},
		.a = 1ull << 37, .b = 6, .c = 80, .more = {TWO('F', 'D'), 8, 14, 15}, .records = 2},
	{"ProxyOp", {HOST, .type = ncclProfileProxyOp, .proxyOp = {1234, 63, -1, 100, 1 << 20, 1}},
		.a = TWO(1234, 63 | 256), .b = TWO(0xffffffffu, 100), .c = 1 << 20, .records = 1},
	{"ProxyStep", {HOST, .type = ncclProfileProxyStep, .proxyStep = {17}}, .a = 17, .records = 1},
	{"ProxyCtrl", {HOST, .type = ncclProfileProxyCtrl}, .records = 1},
	{"KernelCh", {HOST, .type = ncclProfileKernelCh, .kernelCh = {63, 1ull << 60}},
		.a = 63, .b = 1ull << 60, .records = 1},
	{"KernelPhase", {HOST, .type = ncclProfileKernelPhase, .kernelPhase = {63, 2, "N", 1ull << 61}},
		.a = 63 | 2 << 8, .b = 1ull << 61, .c = 'N', .records = 1},
	{"a queue pair's", {HOST, .type = ncclProfileNetPlugin, .netPlugin = {IB, &qp}},
		.flags = IB, .a = 0x123456789abc, .b = 1ull << 33, .c = TWO(1 | 2 << 16, 0xfedcba), .records = 1},
	{"a socket's", {HOST, .type = ncclProfileNetPlugin, .netPlugin = {SOCKET, &sock}},
		.flags = SOCKET, .a = TWO(7, 1), .b = 1ull << 34, .records = 1},
	{"another network's", {HOST, .type = ncclProfileNetPlugin, .netPlugin = {0x70001, AT(1)}},
		.flags = 0x70001, .records = 1},
	{"one without a descriptor", {HOST, .type = ncclProfileNetPlugin, .netPlugin = {IB, NULL}},
		.flags = IB, .records = 1},
	{"CeColl", {HOST, .type = ncclProfileCeColl, .ceColl = {.seqNumber = 21, .func = "F", .sendBuff = AT(22),
			.recvBuff = AT(23), .count = 24, .root = 25, .datatype = "D", .syncStrategy = "S", .intraBatchSync = true,
			.batchSize = 26, .numBatches = 27, .ceSeqNum = 28, .stream = AT(29), .userTag = 81}},
		.flags = 1, .a = 21, .b = 24, .c = 81, .records = 2,
		.more = {TWO('F', 'D'), 'S', TWO(25, 26), 22, 23, 29, TWO(27, 28)}},
	{"CeSync", {HOST, .type = ncclProfileCeSync, .ceCollSync = {true, 8}}, .a = TWO(1, 8), .records = 1},
	{"CeBatch", {HOST, .type = ncclProfileCeBatch, .ceCollBatch = {9, 1ull << 38, true}},
		.a = 9, .b = 1ull << 38, .c = 1, .records = 1},
	/* Of a newer type nothing is known but that it came; of none, or of two at once, not even which. */
	{"a newer type", {HOST, .type = 1ull << 40, .coll = {.seqNumber = 1}}, .records = 1},
	{"no type", {HOST, .type = 0, .coll = {.seqNumber = 1}}, .records = 1},
};

static const struct event* named(const char* name) {
	const struct event* e = events;
	while (strcmp(e->name, name)) e++;
	return e;
}

static uintptr_t start(const struct event* e) {
	ncclProfilerEventDescr_cur_t d = e->d;
	uintptr_t handle = 1;
	CHECK(!weft_prof_startEvent(5, &handle, &d) && handle, "%s is refused", e->name);
	return handle;
}

static void begins(const struct event* e, uint32_t records, const uint64_t* more) {
	const struct weft_record* r = &place[0];
	const struct weft_more* m = (const struct weft_more*)(const void*)&place[1];
	CHECK(r->kind == WEFT_RECORD_START && r->comm == 5 && r->rank == 3 && r->parent == 0x5e && r->time == now &&
		r->type == weft_profile_number(e->d.type), "%s: kind %d, type %d", e->name, r->kind, r->type);
	CHECK(r->flags == e->flags && r->a == e->a && r->b == e->b && r->c == e->c, "%s: flags %#x, %#lx, %#lx, %#lx",
		e->name, r->flags, (unsigned long)r->a, (unsigned long)r->b, (unsigned long)r->c);
	CHECK(taken == records, "%s takes %u records", e->name, taken);
	if (records == 1) return;
	CHECK(m->kind == WEFT_RECORD_MORE && m->type == r->type && m->comm == 5, "%s: kind %d behind", e->name, m->kind);
	for (int i = 0; i < 7; i++)
		CHECK(m->word[i] == more[i], "%s: word %d is %#lx, not %#lx", e->name, i, (unsigned long)m->word[i],
			(unsigned long)more[i]);
}

/* What comes with a state, by the type of its event. */
static void states(void) {
	ncclProfilerNetIbDescr_v1_t later = qp;
	later.qp.length = 99;
	const struct {
		const char* name;
		ncclProfilerEventState_cur_t state;
		ncclProfilerEventStateArgs_cur_t args;
		uint64_t a, b;
	} all[] = {
		{"ProxyStep", ncclProfilerProxyStepSendWait, {.proxyStep = {1ull << 42}}, 1ull << 42, 0},
		{"ProxyCtrl", ncclProfilerProxyCtrlAppendEnd, {.proxyCtrl = {6}}, 6, 0},
		{"KernelCh", ncclProfilerKernelChStop, {.kernelCh = {1ull << 43}}, 1ull << 43, 0},
		{"KernelPhase", ncclProfilerKernelPhaseStop, {.kernelCh = {1ull << 44}}, 1ull << 44, 0},
		{"a queue pair's", ncclProfilerNetPluginUpdate, {.netPlugin = {&later}}, 0x123456789abc, 99},
		{"a socket's", ncclProfilerNetPluginUpdate, {.netPlugin = {&sock}}, TWO(7, 1), 1ull << 34},
		{"CeColl", ncclProfilerCeCollComplete, {.proxyStep = {1}}, 0, 0},
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		const struct event* e = named(all[i].name);
		uintptr_t handle = start(e);
		ncclProfilerEventStateArgs_cur_t args = all[i].args;
		CHECK(!weft_prof_recordEventState(handle, all[i].state, &args), "%s", e->name);
		const struct weft_record* r = &place[0];
		CHECK(r->kind == WEFT_RECORD_STATE && r->id == handle && r->flags == (uint32_t)all[i].state, "%s: kind %d",
			e->name, r->kind);
		CHECK(r->a == all[i].a && r->b == all[i].b, "%s, state %d: %#lx, %#lx", e->name, (int)all[i].state,
			(unsigned long)r->a, (unsigned long)r->b);
		/* Some hosts have nothing to say of a state; and one that is said again is not kept again. */
		uint32_t before = done;
		weft_prof_recordEventState(handle, all[i].state, &args);
		CHECK(done == before, "%s: a state is kept twice", e->name);
		CHECK(!weft_prof_recordEventState(handle, ncclProfilerProxyCtrlIdle, NULL) && done == before + 1 && !place[0].a,
			"%s: a state of which nothing is said", e->name);
	}
}

int main(void) {
	for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
		const struct event* e = &events[i];
		uintptr_t handle = start(e);
		begins(e, e->records, e->more);
		CHECK(place[0].id == handle && (handle & ((1ull << TYPE_SHIFT) - 1)) == 1024 + now, "%s: %#lx", e->name,
			(unsigned long)handle);
		CHECK(!weft_prof_stopEvent(handle) && place[0].kind == WEFT_RECORD_STOP && place[0].id == handle &&
			place[0].type == weft_profile_number(e->d.type), "%s: the stop is of type %d", e->name, place[0].type);
	}
	states();
	/* Work that goes on says so with another length. */
	uintptr_t work = start(named("a queue pair's"));
	ncclProfilerEventStateArgs_cur_t args = {.netPlugin = {&qp}};
	for (uint64_t length = 1; length < 4; length++) {
		uint32_t kept = done;
		qp.qp.length = length;
		weft_prof_recordEventState(work, ncclProfilerNetPluginUpdate, &args);
		CHECK(done == kept + 1 && place[0].b == length, "update %lu is not kept", (unsigned long)length);
	}
	qp.qp.length = 1ull << 33;
	/* A net event of weft's own names its message. */
	cause = (struct weft_cause){31, 32, 33};
	for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
		if (events[i].d.type != ncclProfileNetPlugin) continue;
		start(&events[i]);
		begins(&events[i], 2, (const uint64_t[7]){31, 32, 33});
	}
	/* Nobody follows what is nobody's, nor keeps it. */
	uint32_t before = done;
	uintptr_t handle = 1;
	ncclProfilerEventDescr_cur_t d = events[0].d;
	CHECK(!weft_prof_startEvent(0, &handle, &d) && !handle, "a communicator that is not recorded has an event");
	weft_prof_stopEvent(0);
	weft_prof_recordEventState(0, ncclProfilerProxyStepSendWait, NULL);
	CHECK(done == before, "of no event something is kept");
	return 0;
}
