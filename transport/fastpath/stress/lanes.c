/* lanes.c: the lanes of queue pairs under ThreadSanitizer, AddressSanitizer and UndefinedBehaviorSanitizer, over the
 * simulated libibverbs, which is part of the program: its writes are checked too.  lanes [seed [rounds]] */
#include "scenarios.h"
#include "../lane.h"

#include <sys/un.h>

#include "verbs/verbs.h"
#undef ibv_query_port

#define PAIRS 2 /* of ports, one subnet each: end 0 has a0 and a1, end 1 has b0 and b1 */
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static const char world[] =
	"{\"dir\":\"%s\",\"devices\":[{\"name\":\"a0\",\"gids\":[\"10.1.0.1/24\"]},"
	"{\"name\":\"a1\",\"gids\":[\"10.2.0.1/24\"]},"
	"{\"name\":\"b0\",\"gids\":[\"10.1.0.2/24\"]},{\"name\":\"b1\",\"gids\":[\"10.2.0.2/24\"]}]}";

/* How the lanes of a connection are made. */
static const struct config { uint32_t lanes, width, stripe_min, depth, inline_size, most, above; int flush;
	} configs[CONNS] = {
	{1, 1, 65536, 64, 512, 0, 0, 0},
	{4, 2, 1000, 16, 64, 0, 0, 1},
	{8, 8, 4096, 3, 0, 1000, 0, 0},
	{4, 4, 1024, 2, 128, 20000, 2000, 1},
	{3, 2, 4096, 8, 512, 0, 65536, 0},
	{32, 32, 8192, 8, 220, 0, 1024, 0},
};

struct port { struct ibv_context* ctx; struct ibv_pd* pd; union ibv_gid gid; };
static struct port ports[2][PAIRS];
static int gradual; /* connections begin with one lane, and nothing to flush with */
static char dir[80], control[104]; /* the simulation's folder, gone at exit, and its control socket */

/* One end: what its comm's lanes are made of. */
static struct end {
	struct ibv_cq* cq[PAIRS];
	struct ibv_mr *shared[PAIRS], *data[PAIRS];
	struct ibv_qp *qp[WF_LANES], *flush[PAIRS];
	struct wf_verbs plan;
} ends[CONNS][2];

static void open_ports(void) {
	struct ibv_device** list = ibv_get_device_list(NULL);
	CHECK(list, "devices");
	for (int i = 0; i < 2 * PAIRS; i++) {
		const char* name = ibv_get_device_name(list[i]);
		struct port* p = &ports[name[0] - 'a'][name[1] - '0'];
		p->ctx = ibv_open_device(list[i]);
		p->pd = p->ctx ? ibv_alloc_pd(p->ctx) : NULL;
		CHECK(p->pd && !ibv_query_gid(p->ctx, 1, 1, &p->gid), "%s", name);
	}
	ibv_free_device_list(list);
}

static struct ibv_qp* make_qp(struct port* p, struct ibv_cq* cq, uint32_t sends, uint32_t recvs, uint32_t inline_size) {
	struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = sends, .max_recv_wr = recvs, .max_send_sge = 1, .max_recv_sge = 1,
			.max_inline_data = inline_size}};
	struct ibv_qp_attr a =
		{.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS & ~(unsigned)IBV_ACCESS_LOCAL_WRITE};
	struct ibv_qp* q = ibv_create_qp(p->pd, &init);
	CHECK(q, "create_qp");
	CHECK(!ibv_modify_qp(q, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
	return q;
}

static void connect_qp(struct ibv_qp* q, const struct ibv_qp* peer, const union ibv_gid* gid) {
	struct ibv_qp_attr a =
		{.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer->qp_num, .rq_psn = 7,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12, .ah_attr =
			{.is_global = 1, .port_num = 1, .grh = {.dgid = *gid, .sgid_index = 1, .hop_limit = 64}}};
	CHECK(!ibv_modify_qp(q, &a,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		IBV_QP_MIN_RNR_TIMER), "RTR");
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = 7, .timeout = 10, .retry_cnt = 3, .rnr_retry = 7,
		.max_rd_atomic = 1};
	CHECK(!ibv_modify_qp(q, &a,
		IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
		"RTS");
}

static void make_end(struct end* x, struct actor* a, int e, const struct config* c) {
	struct wf_mr* mr = wf_mr_lookup((uint64_t)(uintptr_t)a->mr);
	struct wf_verbs* p = &x->plan;
	*p = (struct wf_verbs){.devices = PAIRS, .flush_depth = 2, .flush_always = 1, .stripe_min = c->stripe_min,
		.ar_threshold = c->above,
		.next = {.lanes = c->lanes, .width = c->width}, .spare = 256 - WF_BATCH};
	for (int d = 0; d < PAIRS; d++) {
		x->cq[d] = ibv_create_cq(ports[e][d].ctx, 32 * (64 + 256) + 8, NULL, NULL, 0);
		x->shared[d] = ibv_reg_mr(ports[e][d].pd, a->c->ring,
			offsetof(struct wf_comm, late) - offsetof(struct wf_comm, ring), ACCESS);
		x->data[d] = ibv_reg_mr(ports[e][d].pd, a->mem, MEMORY, ACCESS);
		CHECK(x->cq[d] && x->shared[d] && x->data[d], "objects");
		p->device[d].lkey = x->shared[d]->lkey;
		p->device[d].cq = (uint64_t)(uintptr_t)x->cq[d];
		wf_put(mr->key[d].lkey, gradual && d ? 0 : x->data[d]->lkey);
		wf_put(mr->key[d].rkey, gradual && d ? 0 : x->data[d]->rkey);
		if (!e || !c->flush) continue;
		x->flush[d] = make_qp(&ports[e][d], x->cq[d], 2, 1, 0);
		connect_qp(x->flush[d], x->flush[d], &ports[e][d].gid);
		p->device[d].flush = (uint64_t)(uintptr_t)x->flush[d];
		p->flushes |= 1u << d;
	}
	wf_put(mr->kind, WF_MEM_HOST);
	for (uint32_t l = 0; l < c->lanes; l++) {
		uint32_t d = l % PAIRS;
		x->qp[l] = make_qp(&ports[e][d], x->cq[d], c->depth, e ? 256 : 1, c->inline_size);
		p->qp[l] = (struct wf_qp){.qp = (uint64_t)(uintptr_t)x->qp[l], .device = d, .peer_device = d,
			.depth = c->depth, .inline_size = c->inline_size, .most = c->most ? c->most : WF_SIZE_MAX,
			.due = e ? 256 : 0};
	}
}

static void lanes(int i) {
	struct actor* actors[2] = {&conns[i].tx, &conns[i].rx};
	memset(ends[i], 0, sizeof ends[i]);
	for (int e = 0; e < 2; e++) {
		actors[e]->c = wf_comm_new(e ? WF_KIND_RECV : WF_KIND_SEND, 0, (uint64_t)(2 * i + e + 1), &upcalls);
		CHECK(actors[e]->c, "no slab");
		make_end(&ends[i][e], actors[e], e, &configs[i]);
	}
	for (int e = 0; e < 2; e++) {
		struct end *x = &ends[i][e], *peer = &ends[i][!e];
		x->plan.peer = (uint64_t)(uintptr_t)actors[!e]->c->ring;
		for (int d = 0; d < PAIRS; d++) x->plan.peer_key[d] = peer->shared[d]->rkey;
		struct wf_verbs first = x->plan;
		if (gradual) {
			first.next.lanes = first.next.width = first.devices = 1;
			first.flushes &= 1;
			for (int d = 0; d < WF_DEVICES; d++) first.device[d].flush = 0;
		}
		CHECK(!wf_verbs_attach(actors[e]->c, &first), "attach");
		for (uint32_t l = 0; l < configs[i].lanes; l++) connect_qp(x->qp[l], peer->qp[l], &ports[!e][l % PAIRS].gid);
	}
	conns[i].told = 1;
}

static struct end* end_of(struct actor* a) { return &ends[a->conn - conns][a == &a->conn->rx]; }

static void stop_qp(struct ibv_qp* q) {
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
	if (q) CHECK(!ibv_modify_qp(q, &a, IBV_QP_STATE), "ERR");
}

static void stop_end(struct actor* a) {
	struct end* x = end_of(a);
	for (uint32_t l = 0; l < WF_LANES; l++) stop_qp(x->qp[l]);
	for (int d = 0; d < PAIRS; d++) stop_qp(x->flush[d]);
}

static void detach(struct actor* a) {
	struct end* x = end_of(a);
	for (uint32_t l = 0; l < WF_LANES; l++) CHECK(!x->qp[l] || !ibv_destroy_qp(x->qp[l]), "destroy_qp");
	for (int d = 0; d < PAIRS; d++) {
		CHECK(!x->flush[d] || !ibv_destroy_qp(x->flush[d]), "destroy_qp");
		CHECK(!ibv_destroy_cq(x->cq[d]), "destroy_cq");
		CHECK(!ibv_dereg_mr(x->shared[d]) && !ibv_dereg_mr(x->data[d]), "dereg_mr");
	}
	wf_verbs_detach(a->c);
}

/* Says one line to the simulation. */
static void command(const char* line) {
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	char answer[128] = "";
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	snprintf(to.sun_path, sizeof to.sun_path, "%s", control);
	CHECK(fd >= 0 && !connect(fd, (struct sockaddr*)&to, sizeof to), "%s", control);
	CHECK(write(fd, line, strlen(line)) == (ssize_t)strlen(line) && read(fd, answer, sizeof answer - 1) > 0 &&
		!strncmp(answer, "ok", 2), "%s: %s", line, answer);
	close(fd);
}

static void traffic(uint64_t seed) {
	connect_all(seed, 120, lanes);
	run_traffic(seed, 120, service);
	close_all(detach);
}

/* Placement out of order within a queue pair: nothing is complete before its data is there. */
static void reorder(uint64_t seed) {
	connect_all(seed, 60, lanes);
	command("reorder a0 on\n");
	command("reorder a1 on\n");
	command("reorder b0 on\n");
	run_traffic(seed, 60, service);
	command("reorder a0 off\n");
	command("reorder a1 off\n");
	command("reorder b0 off\n");
	close_all(detach);
}

/* The second port joins under traffic, with the lanes, and what flushes wait for comes. */
static void* grower(void* seed) {
	uint64_t s = (uint64_t)(uintptr_t)seed, from = 0;
	for (int i = 0; i < CONNS; i++) {
		usleep(draw(&s) % 500);
		struct actor* actors[2] = {&conns[i].rx, &conns[i].tx};
		for (int e = 0; e < 2; e++) {
			struct wf_comm* c = actors[e]->c;
			struct end* x = end_of(actors[e]);
			struct wf_verbs plan = x->plan;
			struct wf_mr* mr = wf_mr_lookup((uint64_t)(uintptr_t)actors[e]->mr);
			for (int d = 1; d < PAIRS; d++) {
				wf_put(mr->key[d].lkey, x->data[d]->lkey);
				wf_put(mr->key[d].rkey, x->data[d]->rkey);
			}
			for (int d = 0; d < WF_DEVICES; d++) plan.device[d].flush = 0;
			plan.next.from = from; /* of the receiver, which comes first */
			hold(c);
			CHECK(!wf_verbs_attach(c, &plan), "attach more");
			from = e ? 0 : wf_get(c->cts_out);
			wf_hold_end(c);
		}
		for (uint32_t d = 0; d < PAIRS; d++) {
			struct end* x = end_of(&conns[i].rx);
			if (!x->flush[d]) continue;
			hold(conns[i].rx.c);
			CHECK(!wf_verbs_flush_by(conns[i].rx.c, d, (uint64_t)(uintptr_t)x->flush[d], 2), "flush_by");
			CHECK(wf_verbs_flush_by(conns[i].rx.c, d, (uint64_t)(uintptr_t)x->flush[d], 2) == EINVAL, "twice");
			wf_hold_end(conns[i].rx.c);
		}
	}
	return service(seed);
}

static void growth(uint64_t seed) {
	uint32_t grown = 0;
	gradual = 1;
	connect_all(seed, 120, lanes);
	gradual = 0;
	run_traffic(seed, 120, grower);
	for (int i = 0; i < CONNS; i++) grown += configs[i].lanes > 1 && wf_get(conns[i].tx.c->nlanes) == configs[i].lanes;
	CHECK(grown, "no lane has joined while there was traffic");
	close_all(detach);
}

/* Queue pairs end, requests fail and posts fail under traffic, and the core takes in what has arrived. */
static void* killer(void* seed) {
	uint64_t s = (uint64_t)(uintptr_t)seed;
	for (int i = 0; i < CONNS; i++) {
		usleep(draw(&s) % 3000);
		struct actor* a = draw(&s) % 2 ? &conns[i].tx : &conns[i].rx;
		if (i == 0) command(draw(&s) % 2 ? "error a0 3 RETRY_EXC_ERR\n" : "fail post_send 2 EIO\n");
		else stop_qp(end_of(a)->qp[draw(&s) % configs[i].lanes]);
	}
	for (int i = 0; i < CONNS; i++) { /* whom nothing met is cut off; what came before is taken in */
		usleep(draw(&s) % 3000);
		wf_comm_fail(conns[i].tx.c, wf_get(conns[i].tx.c->gen), CODE_CLOSED);
		wf_comm_fail(conns[i].rx.c, wf_get(conns[i].rx.c->gen), CODE_CLOSED);
		hold(conns[i].rx.c);
		wf_verbs_drain(conns[i].rx.c, &(struct wf_fault){0});
		wf_hold_end(conns[i].rx.c);
		stop_end(&conns[i].tx);
		stop_end(&conns[i].rx);
	}
	return NULL;
}
static void death(uint64_t seed) {
	connect_all(seed, 1u << 30, lanes);
	run_death(seed, killer);
	close_all(detach);
}

static void dereg(uint64_t seed) {
	connect_all(seed, 1u << 30, lanes);
	run_dereg(seed, stop_end);
	close_all(detach);
}

static void remove_dir(void) {
	char rm[128];
	snprintf(rm, sizeof rm, "rm -rf '%s'", dir);
	if (!system(rm)) return;
	fprintf(stderr, "%s failed\n", rm);
	_exit(1);
}

int main(int argc, char** argv) {
	char text[1024];
	const char* tmp = getenv("TMPDIR");
	CHECK(snprintf(dir, sizeof dir, "%s/lanesXXXXXX", tmp ? tmp : "/tmp") < (int)sizeof dir, "TMPDIR is too long: %s",
		tmp);
	CHECK(mkdtemp(dir) && !atexit(remove_dir), "%s", dir);
	snprintf(control, sizeof control, "%s/ctl", dir);
	snprintf(text, sizeof text, world, dir);
	setenv("WEFT_SIMVERBS", text, 1);
	setenv("WEFT_SIMVERBS_CTL", control, 1);
	open_ports();
	setvbuf(stdout, NULL, _IOLBF, 0);
	run_all(argc, argv, (const struct scenario[]){{"traffic", traffic}, {"reorder", reorder}, {"growth", growth},
		{"death", death}, {"dereg", dereg}, {NULL, NULL}});
	return 0;
}
