/* load.h: the functions of libibverbs that weft calls, found at run time, and calls.c, which reaches them from Go
 * with plain integers for the library's objects. */
#ifndef WEFT_VERBS_LOAD_H
#define WEFT_VERBS_LOAD_H

#include "verbs/verbs.h"

/* member, function, symbol version, 1: weft cannot do without */
#define WEFT_IBV_SYMBOLS(X) \
	X(fork_init, ibv_fork_init, "IBVERBS_1.1", 0) \
	X(get_device_list, ibv_get_device_list, "IBVERBS_1.1", 1) \
	X(free_device_list, ibv_free_device_list, "IBVERBS_1.1", 1) \
	X(open_device, ibv_open_device, "IBVERBS_1.1", 1) \
	X(close_device, ibv_close_device, "IBVERBS_1.1", 1) \
	X(query_device, ibv_query_device, "IBVERBS_1.1", 1) \
	X(query_port, ibv_query_port, "IBVERBS_1.1", 1) \
	X(query_port_speed, ibv_query_port_speed, "IBVERBS_1.16", 0) \
	X(query_gid, ibv_query_gid, "IBVERBS_1.1", 1) \
	X(query_gid_table, _ibv_query_gid_table, "IBVERBS_1.11", 0) \
	X(query_pkey, ibv_query_pkey, "IBVERBS_1.1", 0) \
	X(alloc_pd, ibv_alloc_pd, "IBVERBS_1.1", 1) \
	X(dealloc_pd, ibv_dealloc_pd, "IBVERBS_1.1", 1) \
	X(reg_mr, ibv_reg_mr, "IBVERBS_1.1", 1) \
	X(reg_mr_iova2, ibv_reg_mr_iova2, "IBVERBS_1.8", 0) \
	X(reg_dmabuf_mr, ibv_reg_dmabuf_mr, "IBVERBS_1.12", 0) \
	X(dereg_mr, ibv_dereg_mr, "IBVERBS_1.1", 1) \
	X(create_cq, ibv_create_cq, "IBVERBS_1.1", 1) \
	X(destroy_cq, ibv_destroy_cq, "IBVERBS_1.1", 1) \
	X(create_qp, ibv_create_qp, "IBVERBS_1.1", 1) \
	X(modify_qp, ibv_modify_qp, "IBVERBS_1.1", 1) \
	X(query_qp, ibv_query_qp, "IBVERBS_1.1", 1) \
	X(destroy_qp, ibv_destroy_qp, "IBVERBS_1.1", 1) \
	X(query_ece, ibv_query_ece, "IBVERBS_1.10", 0) \
	X(set_ece, ibv_set_ece, "IBVERBS_1.10", 0) \
	X(get_async_event, ibv_get_async_event, "IBVERBS_1.1", 1) \
	X(ack_async_event, ibv_ack_async_event, "IBVERBS_1.1", 1)

struct weft_ibv {
#define WEFT_IBV_MEMBER(member, function, version, required) __typeof__(function)* member;
	WEFT_IBV_SYMBOLS(WEFT_IBV_MEMBER)
#undef WEFT_IBV_MEMBER
};

/* A library's symbol in the version that a linked program would get, else in any. */
void* weft_symbol(void* library, const char* name, const char* version);

/* Opens the library of that name. NULL: why says what was wrong with it; missing is 1 when there is no such file. */
struct weft_ibv* weft_ibv_load(const char* name, char* why, size_t size, int* missing);

/* Every call returns 0 or a positive errno. Objects travel as integers: Go never follows them. */
int weft_ibv_fork_init(const struct weft_ibv* v);
int weft_ibv_get_device_list(const struct weft_ibv* v, uintptr_t* list, int* n);
void weft_ibv_free_device_list(const struct weft_ibv* v, uintptr_t list);
const struct ibv_device* weft_ibv_device(uintptr_t list, int i, uintptr_t* device);
int weft_ibv_open_device(const struct weft_ibv* v, uintptr_t device, uintptr_t* context, int* cmd_fd, int* async_fd);
int weft_ibv_close_device(const struct weft_ibv* v, uintptr_t context);
int weft_ibv_query_device(const struct weft_ibv* v, uintptr_t context, struct ibv_device_attr* attr);
int weft_ibv_query_port(const struct weft_ibv* v, uintptr_t context, uint8_t port, struct ibv_port_attr* attr);
int weft_ibv_query_port_speed(const struct weft_ibv* v, uintptr_t context, uint32_t port, uint64_t* speed);
int weft_ibv_query_gid(const struct weft_ibv* v, uintptr_t context, uint8_t port, int index, union ibv_gid* gid);
int weft_ibv_query_gid_table(const struct weft_ibv* v, uintptr_t context, struct ibv_gid_entry* entries, size_t most,
                             size_t* n);
/* In the order of this host's bytes. */
int weft_ibv_query_pkey(const struct weft_ibv* v, uintptr_t context, uint8_t port, int index, uint16_t* pkey);
int weft_ibv_alloc_pd(const struct weft_ibv* v, uintptr_t context, uintptr_t* pd);
int weft_ibv_dealloc_pd(const struct weft_ibv* v, uintptr_t pd);

struct weft_ibv_mr {
	uintptr_t mr;
	uint32_t lkey, rkey;
};
int weft_ibv_reg_mr(const struct weft_ibv* v, uintptr_t pd, uintptr_t addr, size_t length, int access,
                    struct weft_ibv_mr* out);
int weft_ibv_reg_mr_iova2(const struct weft_ibv* v, uintptr_t pd, uintptr_t addr, size_t length, unsigned access,
                          struct weft_ibv_mr* out);
int weft_ibv_reg_dmabuf_mr(const struct weft_ibv* v, uintptr_t pd, uint64_t offset, size_t length, uint64_t iova,
	int fd,
                           int access, struct weft_ibv_mr* out);
int weft_ibv_dereg_mr(const struct weft_ibv* v, uintptr_t mr);

int weft_ibv_create_cq(const struct weft_ibv* v, uintptr_t context, int cqe, uintptr_t* cq, int* got);
int weft_ibv_destroy_cq(const struct weft_ibv* v, uintptr_t cq);
int weft_ibv_create_qp(const struct weft_ibv* v, uintptr_t pd, uintptr_t send_cq, uintptr_t recv_cq,
	struct ibv_qp_cap* cap,
                       uintptr_t* qp, uint32_t* number);
int weft_ibv_modify_qp(const struct weft_ibv* v, uintptr_t qp, struct ibv_qp_attr* attr, int mask);
int weft_ibv_query_qp(const struct weft_ibv* v, uintptr_t qp, int mask, struct ibv_qp_attr* attr);
int weft_ibv_destroy_qp(const struct weft_ibv* v, uintptr_t qp);
int weft_ibv_query_ece(const struct weft_ibv* v, uintptr_t qp, struct ibv_ece* ece);
int weft_ibv_set_ece(const struct weft_ibv* v, uintptr_t qp, struct ibv_ece* ece);

/* Posts a signaled WRITE, whose wr_id no request of the executor has. */
#define WEFT_PROOF 0
int weft_ibv_post_proof(uintptr_t qp, uint64_t from, uint32_t lkey, uint32_t bytes, uint64_t addr, uint32_t rkey);
/* Takes at most one completion: 1: there was one, 0: none, < 0: the call failed. */
int weft_ibv_poll_one(uintptr_t cq, struct ibv_wc* wc);

struct weft_ibv_event {
	uint32_t type;     /* enum ibv_event_type */
	uint32_t port;     /* events of a port */
	uintptr_t element; /* events of a CQ or QP: which one */
	struct ibv_async_event raw;
};
int weft_ibv_get_async_event(const struct weft_ibv* v, uintptr_t context, struct weft_ibv_event* event);
void weft_ibv_ack_async_event(const struct weft_ibv* v, struct weft_ibv_event* event);

#endif
