/* calls.c: one function for each of libibverbs', which turns objects into integers and the library's several ways to
 * report a failure (an errno, -1 with errno, -errno, NULL with errno) into one: 0 or a positive errno. */
#define _GNU_SOURCE
#include "load.h"

#include <endian.h>
#include <errno.h>

#define AS(type, value) ((struct type*)(value))

/* errno of a call that returned NULL, or -1; a provider that forgot to set it must not look like success. */
static int cause(void) { return errno > 0 ? errno : EIO; }

static int status(int rc) {
	if (rc == 0) return 0;
	if (rc == -1) return cause();
	return rc > 0 ? rc : -rc;
}

int weft_ibv_fork_init(const struct weft_ibv* v) {
	errno = 0;
	return v->fork_init ? status(v->fork_init()) : ENOSYS;
}

int weft_ibv_get_device_list(const struct weft_ibv* v, uintptr_t* list, int* n) {
	errno = 0;
	*n = 0;
	*list = (uintptr_t)v->get_device_list(n);
	return *list ? 0 : cause();
}

void weft_ibv_free_device_list(const struct weft_ibv* v, uintptr_t list) {
	v->free_device_list((struct ibv_device**)list);
}

const struct ibv_device* weft_ibv_device(uintptr_t list, int i, uintptr_t* device) {
	const struct ibv_device* d = ((struct ibv_device**)list)[i];
	*device = (uintptr_t)d;
	return d;
}

int weft_ibv_open_device(const struct weft_ibv* v, uintptr_t device, uintptr_t* context, int* cmd_fd, int* async_fd) {
	errno = 0;
	struct ibv_context* c = v->open_device(AS(ibv_device, device));
	if (!c) return cause();
	*context = (uintptr_t)c;
	*cmd_fd = c->cmd_fd;
	*async_fd = c->async_fd;
	return 0;
}

int weft_ibv_close_device(const struct weft_ibv* v, uintptr_t context) {
	errno = 0;
	return status(v->close_device(AS(ibv_context, context)));
}

int weft_ibv_query_device(const struct weft_ibv* v, uintptr_t context, struct ibv_device_attr* attr) {
	errno = 0;
	return status(v->query_device(AS(ibv_context, context), attr));
}

/* The exported function knows only the oldest, shorter form of the struct; newer libraries fill the whole through
 * the table. */
int weft_ibv_query_port(const struct weft_ibv* v, uintptr_t context, uint8_t port, struct ibv_port_attr* attr) {
	struct ibv_context* c = AS(ibv_context, context);
	struct verbs_context* table = verbs_get_ctx(c);
	memset(attr, 0, sizeof(*attr));
	errno = 0;
	if (weft_verbs_ctx_has(table, offsetof(struct verbs_context, query_port)) && table->query_port)
		return status(table->query_port(c, port, attr, sizeof(*attr)));
	return status((v->query_port)(c, port, (struct _compat_ibv_port_attr*)attr));
}

int weft_ibv_query_port_speed(const struct weft_ibv* v, uintptr_t context, uint32_t port, uint64_t* speed) {
	errno = 0;
	return v->query_port_speed ? status(v->query_port_speed(AS(ibv_context, context), port, speed)) : ENOSYS;
}

int weft_ibv_query_gid(const struct weft_ibv* v, uintptr_t context, uint8_t port, int index, union ibv_gid* gid) {
	errno = 0;
	return status(v->query_gid(AS(ibv_context, context), port, index, gid));
}

int weft_ibv_query_gid_table(const struct weft_ibv* v, uintptr_t context, struct ibv_gid_entry* entries, size_t most,
                             size_t* n) {
	if (!v->query_gid_table) return ENOSYS;
	errno = 0;
	ssize_t got = v->query_gid_table(AS(ibv_context, context), entries, most, 0, sizeof(*entries));
	*n = got < 0 ? 0 : (size_t)got;
	return got < 0 ? status((int)got) : 0;
}

int weft_ibv_query_pkey(const struct weft_ibv* v, uintptr_t context, uint8_t port, int index, uint16_t* pkey) {
	errno = 0;
	if (!v->query_pkey) return ENOSYS;
	int rc = status(v->query_pkey(AS(ibv_context, context), port, index, pkey));
	*pkey = be16toh(*pkey);
	return rc;
}

int weft_ibv_alloc_pd(const struct weft_ibv* v, uintptr_t context, uintptr_t* pd) {
	errno = 0;
	*pd = (uintptr_t)v->alloc_pd(AS(ibv_context, context));
	return *pd ? 0 : cause();
}

int weft_ibv_dealloc_pd(const struct weft_ibv* v, uintptr_t pd) {
	errno = 0;
	return status(v->dealloc_pd(AS(ibv_pd, pd)));
}

static int registered(const struct ibv_mr* mr, struct weft_ibv_mr* out) {
	if (!mr) return cause();
	*out = (struct weft_ibv_mr){.mr = (uintptr_t)mr, .lkey = mr->lkey, .rkey = mr->rkey};
	return 0;
}

int weft_ibv_reg_mr(const struct weft_ibv* v, uintptr_t pd, uintptr_t addr, size_t length, int access,
                    struct weft_ibv_mr* out) {
	errno = 0;
	return registered(v->reg_mr(AS(ibv_pd, pd), (void*)addr, length, access), out);
}

int weft_ibv_reg_mr_iova2(const struct weft_ibv* v, uintptr_t pd, uintptr_t addr, size_t length, unsigned access,
                          struct weft_ibv_mr* out) {
	if (!v->reg_mr_iova2) return ENOSYS;
	errno = 0;
	return registered(v->reg_mr_iova2(AS(ibv_pd, pd), (void*)addr, length, addr, access), out);
}

int weft_ibv_reg_dmabuf_mr(const struct weft_ibv* v, uintptr_t pd, uint64_t offset, size_t length, uint64_t iova,
	int fd,
                           int access, struct weft_ibv_mr* out) {
	if (!v->reg_dmabuf_mr) return ENOSYS;
	errno = 0;
	return registered(v->reg_dmabuf_mr(AS(ibv_pd, pd), offset, length, iova, fd, access), out);
}

int weft_ibv_dereg_mr(const struct weft_ibv* v, uintptr_t mr) {
	errno = 0;
	return status(v->dereg_mr(AS(ibv_mr, mr)));
}

int weft_ibv_create_cq(const struct weft_ibv* v, uintptr_t context, int cqe, uintptr_t* cq, int* got) {
	errno = 0;
	struct ibv_cq* c = v->create_cq(AS(ibv_context, context), cqe, NULL, NULL, 0);
	if (!c) return cause();
	*cq = (uintptr_t)c;
	*got = c->cqe;
	return 0;
}

int weft_ibv_destroy_cq(const struct weft_ibv* v, uintptr_t cq) {
	errno = 0;
	return status(v->destroy_cq(AS(ibv_cq, cq)));
}

int weft_ibv_create_qp(const struct weft_ibv* v, uintptr_t pd, uintptr_t send_cq, uintptr_t recv_cq,
	struct ibv_qp_cap* cap,
                       uintptr_t* qp, uint32_t* number) {
	struct ibv_qp_init_attr init = {
	    .send_cq = AS(ibv_cq, send_cq), .recv_cq = AS(ibv_cq, recv_cq), .cap = *cap, .qp_type = IBV_QPT_RC};
	errno = 0;
	struct ibv_qp* q = v->create_qp(AS(ibv_pd, pd), &init);
	if (!q) return cause();
	*cap = init.cap;
	*qp = (uintptr_t)q;
	*number = q->qp_num;
	return 0;
}

int weft_ibv_modify_qp(const struct weft_ibv* v, uintptr_t qp, struct ibv_qp_attr* attr, int mask) {
	errno = 0;
	return status(v->modify_qp(AS(ibv_qp, qp), attr, mask));
}

int weft_ibv_query_qp(const struct weft_ibv* v, uintptr_t qp, int mask, struct ibv_qp_attr* attr) {
	struct ibv_qp_init_attr init;
	memset(attr, 0, sizeof(*attr));
	memset(&init, 0, sizeof(init));
	errno = 0;
	return status(v->query_qp(AS(ibv_qp, qp), attr, mask, &init));
}

int weft_ibv_destroy_qp(const struct weft_ibv* v, uintptr_t qp) {
	errno = 0;
	return status(v->destroy_qp(AS(ibv_qp, qp)));
}

int weft_ibv_query_ece(const struct weft_ibv* v, uintptr_t qp, struct ibv_ece* ece) {
	errno = 0;
	return v->query_ece ? status(v->query_ece(AS(ibv_qp, qp), ece)) : ENOSYS;
}

int weft_ibv_set_ece(const struct weft_ibv* v, uintptr_t qp, struct ibv_ece* ece) {
	errno = 0;
	return v->set_ece ? status(v->set_ece(AS(ibv_qp, qp), ece)) : ENOSYS;
}

int weft_ibv_post_proof(uintptr_t qp, uint64_t from, uint32_t lkey, uint32_t bytes, uint64_t addr, uint32_t rkey) {
	struct ibv_sge sge = {.addr = from, .length = bytes, .lkey = lkey};
	struct ibv_send_wr wr = {.wr_id = WEFT_PROOF, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = rkey;
	struct ibv_send_wr* bad = NULL;
	errno = 0;
	return status(ibv_post_send(AS(ibv_qp, qp), &wr, &bad));
}

int weft_ibv_poll_one(uintptr_t cq, struct ibv_wc* wc) {
	memset(wc, 0, sizeof(*wc));
	return ibv_poll_cq(AS(ibv_cq, cq), 1, wc);
}

int weft_ibv_get_async_event(const struct weft_ibv* v, uintptr_t context, struct weft_ibv_event* event) {
	memset(event, 0, sizeof(*event));
	errno = 0;
	int rc = v->get_async_event(AS(ibv_context, context), &event->raw);
	if (rc) return status(rc);
	event->type = event->raw.event_type;
	event->element = (uintptr_t)event->raw.element.qp;
	event->port = (uint32_t)event->raw.element.port_num;
	return 0;
}

void weft_ibv_ack_async_event(const struct weft_ibv* v, struct weft_ibv_event* event) {
	v->ack_async_event(&event->raw);
}
