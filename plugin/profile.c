/* profile.c: the events of NCCL's profiler, on the threads that move data. Each call becomes a record or two
 * (transport/record), whose position is the event's handle: so a handle is a number that nobody follows, one that is
 * stale, NULL or of another process does no harm, and a context is only a number, too. Nothing here fails: what a
 * profiler cannot keep is not NCCL's trouble. What a field's place in a record is, format.go of the recorder says.
 *
 * weft_prof_init and weft_prof_finalize are Go. */
#include "profile.h"
#include "record.h"

#include <string.h>

#include "nccl/profiler_net.h"

#define OF_IB (1ull << 63) /* in the handle of a net event: its descriptors are those of queue pairs */
#define UNKNOWN 63         /* a type that is no bit, or a newer one than all */
#define ODD 0x9e3779b97f4a7c15 /* keeps words apart that are put together */
#define HIGH(v) ((uint64_t)(v) << 32)
#define LONG (ncclProfileCollApi | ncclProfileP2pApi | ncclProfileColl | ncclProfileP2p | ncclProfileCeColl)

static const int64_t of_ib = NCCL_PROFILER_NET_TYPE_IB | NCCL_PROFILER_NET_IB_VER;
static const int64_t of_socket = NCCL_PROFILER_NET_TYPE_SOCK | NCCL_PROFILER_NET_SOCKET_VER;

uint8_t weft_profile_number(uint64_t type) {
	if (!type || type & (type - 1)) return UNKNOWN;
	uint8_t bit = (uint8_t)__builtin_ctzll(type);
	return bit < UNKNOWN ? bit : UNKNOWN;
}

static uint64_t names(const char* low, const char* high) {
	return weft_record_text(low) | HIGH(weft_record_text(high));
}

static uint64_t address(const void* p) { return (uint64_t)(uintptr_t)p; }

/* What a network says of an event of its own; data lives as long as the call. */
static void describe(struct weft_record* r, int64_t id, const void* data) {
	const ncclProfilerNetIbDescr_v1_t* ib = data;
	const ncclProfilerNetSockDescr_v1_t* sock = data;
	if (!data) return;
	if (id == of_ib && ib->type == ncclProfileQp) {
		r->a = ib->qp.wr_id;
		r->b = ib->qp.length;
		r->c = (uint16_t)ib->qp.device | (uint64_t)(uint16_t)ib->qp.opcode << 16 | HIGH((uint32_t)ib->qp.qpNum);
	}
	if (id == of_socket && sock->type == ncclProfileSocket) {
		r->a = (uint32_t)sock->sock.fd | HIGH((uint32_t)sock->sock.op);
		r->b = sock->sock.length;
	}
}

/* What the one record of an event, or the first of two, holds. */
static void begin(struct weft_record* r, const ncclProfilerEventDescr_cur_t* d) {
	switch (d->type) {
	case ncclProfileGroupApi:
		r->a = (uint32_t)d->groupApi.groupDepth;
		r->flags = d->groupApi.graphCaptured;
		break;
	case ncclProfileKernelLaunch: r->b = address(d->kernelLaunch.stream); break;
	case ncclProfileProxyOp:
		r->a = (uint32_t)d->proxyOp.pid | HIGH(d->proxyOp.channelId) | HIGH(d->proxyOp.isSend ? 256 : 0);
		r->b = (uint32_t)d->proxyOp.peer | HIGH((uint32_t)d->proxyOp.nSteps);
		r->c = (uint32_t)d->proxyOp.chunkSize;
		break;
	case ncclProfileProxyStep: r->a = (uint32_t)d->proxyStep.step; break;
	case ncclProfileKernelCh:
		r->a = d->kernelCh.channelId;
		r->b = d->kernelCh.pTimer;
		break;
	case ncclProfileKernelPhase:
		r->a = d->kernelPhase.channelId | (uint64_t)d->kernelPhase.phaseId << 8;
		r->b = d->kernelPhase.pTimer;
		r->c = weft_record_text(d->kernelPhase.phaseName);
		break;
	case ncclProfileNetPlugin:
		r->flags = (uint32_t)d->netPlugin.id;
		describe(r, d->netPlugin.id, d->netPlugin.data);
		if (d->netPlugin.id == of_ib) r->id |= OF_IB;
		break;
	case ncclProfileCeSync: r->a = d->ceCollSync.isComplete | HIGH((uint32_t)d->ceCollSync.nRanks); break;
	case ncclProfileCeBatch:
		r->a = (uint32_t)d->ceCollBatch.numOps;
		r->b = d->ceCollBatch.totalBytes;
		r->c = d->ceCollBatch.useIntraSync;
		break;
	default: break; /* groups and the proxy's control have nothing; others go on in begin_long, or are newer than all */
	}
}

/* Those that need both, which come once an operation. */
static void begin_long(struct weft_record* r, uint64_t* more, const ncclProfilerEventDescr_cur_t* d) {
	switch (d->type) {
	case ncclProfileCollApi:
		r->a = d->collApi.count;
		r->b = address(d->collApi.stream);
		r->c = d->collApi.userTag;
		r->flags = d->collApi.graphCaptured;
		more[0] = names(d->collApi.func, d->collApi.datatype);
		more[1] = (uint32_t)d->collApi.root;
		break;
	case ncclProfileP2pApi:
		r->a = d->p2pApi.count;
		r->b = address(d->p2pApi.stream);
		r->c = d->p2pApi.userTag;
		r->flags = d->p2pApi.graphCaptured;
		more[0] = names(d->p2pApi.func, d->p2pApi.datatype);
		break;
	case ncclProfileColl:
		r->a = d->coll.seqNumber;
		r->b = d->coll.count;
		r->c = d->coll.userTag;
		more[0] = names(d->coll.func, d->coll.datatype);
		more[1] = names(d->coll.algo, d->coll.proto);
		more[2] = (uint32_t)d->coll.root | HIGH(d->coll.nChannels) | HIGH(d->coll.nWarps << 8) |
			HIGH(d->coll.isSymColl ? 1 << 16 : 0);
		more[3] = address(d->coll.sendBuff);
		more[4] = address(d->coll.recvBuff);
		more[5] = address(d->coll.parentGroup);
		more[6] = weft_record_text(d->coll.kernelVariant);
		break;
	case ncclProfileP2p:
		r->a = d->p2p.count;
		r->b = (uint32_t)d->p2p.peer;
		r->c = d->p2p.userTag;
		more[0] = names(d->p2p.func, d->p2p.datatype);
		more[1] = d->p2p.nChannels;
		more[2] = address(d->p2p.buff);
		more[3] = address(d->p2p.parentGroup);
		break;
	case ncclProfileCeColl:
		r->a = d->ceColl.seqNumber;
		r->b = d->ceColl.count;
		r->c = d->ceColl.userTag;
		r->flags = d->ceColl.intraBatchSync;
		more[0] = names(d->ceColl.func, d->ceColl.datatype);
		more[1] = weft_record_text(d->ceColl.syncStrategy);
		more[2] = (uint32_t)d->ceColl.root | HIGH(d->ceColl.batchSize);
		more[3] = address(d->ceColl.sendBuff);
		more[4] = address(d->ceColl.recvBuff);
		more[5] = address(d->ceColl.stream);
		more[6] = d->ceColl.numBatches | HIGH(d->ceColl.ceSeqNum);
		break;
	default: break;
	}
}

static uint8_t type_of(uintptr_t handle) { return (uint8_t)(((handle & ~OF_IB) >> TYPE_SHIFT) - 1); }

void weft_profile_start(uintptr_t context, uintptr_t* handle, ncclProfilerEventDescr_cur_t* descr) {
	uint64_t at;
	struct weft_cause cause = {0};
	*handle = 0;
	if (!context) return; /* a communicator of which nothing is recorded */
	if (descr->type == ncclProfileNetPlugin) cause = weft_record_cause();
	uint32_t n = descr->type & LONG || cause.link ? 2 : 1;
	struct weft_record* r = weft_record_take(n, &at);
	if (!r) return;
	uint8_t type = weft_profile_number(descr->type);
	*r = (struct weft_record){.kind = WEFT_RECORD_START, .type = type, .comm = (uint16_t)context,
		.time = weft_record_clock(), .id = (uint64_t)(type + 1) << TYPE_SHIFT | at,
		.parent = address(descr->parentObj), .rank = descr->rank};
	begin(r, descr);
	if (n == 2) {
		struct weft_more* more = (struct weft_more*)(void*)(r + 1);
		*more = (struct weft_more){.kind = WEFT_RECORD_MORE, .type = type, .comm = (uint16_t)context};
		if (cause.link) memcpy(more->word, &cause, sizeof cause);
		else begin_long(r, more->word, descr);
	}
	weft_record_done(r, n, at);
	*handle = (uintptr_t)r->id;
}

void weft_profile_stop(uintptr_t handle) {
	uint64_t at;
	struct weft_record* r = handle ? weft_record_take(1, &at) : NULL;
	if (!r) return;
	*r = (struct weft_record){.kind = WEFT_RECORD_STOP, .type = type_of(handle),
		.time = weft_record_clock(), .id = handle};
	weft_record_done(r, 1, at);
}

/* A step's state comes again each time the proxy looks whether it is over: only what is new is kept. */
void weft_profile_state(uintptr_t handle, ncclProfilerEventState_cur_t state,
		ncclProfilerEventStateArgs_cur_t* args) {
	uint64_t at;
	uint8_t type = type_of(handle);
	struct weft_record now = {.kind = WEFT_RECORD_STATE, .type = type, .id = handle, .flags = (uint32_t)state};
	if (!handle || !weft_recording()) return;
	switch (args ? 1ull << (type & UNKNOWN) : 0) {
	case ncclProfileProxyStep: now.a = args->proxyStep.transSize; break;
	case ncclProfileProxyCtrl: now.a = (uint32_t)args->proxyCtrl.appendedProxyOps; break;
	case ncclProfileKernelCh:
	case ncclProfileKernelPhase: now.a = args->kernelCh.pTimer; break;
	case ncclProfileNetPlugin: describe(&now, handle & OF_IB ? of_ib : of_socket, args->netPlugin.data); break;
	default: break;
	}
	if (weft_record_said(handle, now.a ^ now.b * ODD ^ ((uint64_t)state + 1) << TYPE_SHIFT)) return;
	struct weft_record* r = weft_record_take(1, &at);
	if (!r) return;
	now.time = weft_record_clock();
	*r = now;
	weft_record_done(r, 1, at);
}

int weft_prof_startEvent(uintptr_t context, uintptr_t* eHandle, ncclProfilerEventDescr_cur_t* eDescr) {
	if (weft_chain_length) weft_chain_start(context, eHandle, eDescr);
	else weft_profile_start(context, eHandle, eDescr);
	return ncclSuccess;
}

int weft_prof_stopEvent(uintptr_t eHandle) {
	if (weft_chain_length) weft_chain_stop(eHandle);
	else weft_profile_stop(eHandle);
	return ncclSuccess;
}

int weft_prof_recordEventState(uintptr_t eHandle, ncclProfilerEventState_cur_t eState,
		ncclProfilerEventStateArgs_cur_t* eStateArgs) {
	if (weft_chain_length) weft_chain_state(eHandle, eState, eStateArgs);
	else weft_profile_state(eHandle, eState, eStateArgs);
	return ncclSuccess;
}
