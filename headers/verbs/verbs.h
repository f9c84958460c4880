/* The part of libibverbs' interface that weft uses, restated in our own words: a C file compiles against this or against
 * <infiniband/verbs.h>. The version beside a function is its symbol version (dlvsym). Functions return 0 or a positive
 * errno, or a pointer or NULL with errno, unless said otherwise. headers/verbs_test.go compares all of it with the real
 * header. */
#ifndef WEFT_VERBS_VERBS_H
#define WEFT_VERBS_VERBS_H

#include <string.h>
#include <sys/types.h>

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Devices: IBVERBS_1.1, get_device_index 1.9. */
struct ibv_device** ibv_get_device_list(int* num_devices);
void ibv_free_device_list(struct ibv_device** list);
const char* ibv_get_device_name(struct ibv_device* device);
uint64_t ibv_get_device_guid(struct ibv_device* device); /* network byte order */
int ibv_get_device_index(struct ibv_device* device);
struct ibv_context* ibv_open_device(struct ibv_device* device);
int ibv_close_device(struct ibv_context* context);
int ibv_query_device(struct ibv_context* context, struct ibv_device_attr* device_attr);

/* Ports and GIDs: IBVERBS_1.1, get_pkey_index 1.5, gid_ex and gid_table 1.11, port_speed 1.16 (unit 100 Mb/s). */
int ibv_query_port(struct ibv_context* context, uint8_t port_num, struct _compat_ibv_port_attr* port_attr);
int ibv_query_port_speed(struct ibv_context* context, uint32_t port_num, uint64_t* port_speed);
int ibv_query_gid(struct ibv_context* context, uint8_t port_num, int index, union ibv_gid* gid); /* -1 and errno */
int _ibv_query_gid_ex(struct ibv_context* context, uint32_t port_num, uint32_t gid_index, struct ibv_gid_entry* entry,
                      uint32_t flags, size_t entry_size);
ssize_t _ibv_query_gid_table(struct ibv_context* context, struct ibv_gid_entry* entries, size_t max_entries,
                             uint32_t flags, size_t entry_size); /* a count, or -errno */
int ibv_query_pkey(struct ibv_context* context, uint8_t port_num, int index, uint16_t* pkey);
int ibv_get_pkey_index(struct ibv_context* context, uint8_t port_num, uint16_t pkey);

/* Memory: IBVERBS_1.1, iova 1.7, iova2 1.8, dmabuf 1.12. Only iova2 takes optional flags on every kernel. */
struct ibv_pd* ibv_alloc_pd(struct ibv_context* context);
int ibv_dealloc_pd(struct ibv_pd* pd);
struct ibv_mr* ibv_reg_mr(struct ibv_pd* pd, void* addr, size_t length, int access);
struct ibv_mr* ibv_reg_mr_iova(struct ibv_pd* pd, void* addr, size_t length, uint64_t iova, int access);
struct ibv_mr* ibv_reg_mr_iova2(struct ibv_pd* pd, void* addr, size_t length, uint64_t iova, unsigned int access);
struct ibv_mr* ibv_reg_dmabuf_mr(struct ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access);
int ibv_rereg_mr(struct ibv_mr* mr, int flags, struct ibv_pd* pd, void* addr, size_t length, int access);
int ibv_dereg_mr(struct ibv_mr* mr);

/* Completions: IBVERBS_1.1. */
struct ibv_comp_channel* ibv_create_comp_channel(struct ibv_context* context);
int ibv_destroy_comp_channel(struct ibv_comp_channel* channel);
struct ibv_cq* ibv_create_cq(struct ibv_context* context, int cqe, void* cq_context, struct ibv_comp_channel* channel,
                             int comp_vector);
int ibv_resize_cq(struct ibv_cq* cq, int cqe);
int ibv_destroy_cq(struct ibv_cq* cq);
int ibv_get_cq_event(struct ibv_comp_channel* channel, struct ibv_cq** cq, void** cq_context); /* 0 or -1 and errno */
void ibv_ack_cq_events(struct ibv_cq* cq, unsigned int nevents);

/* Queue pairs: IBVERBS_1.1, to_qp_ex 1.6, ECE 1.10, data_in_order 1.14. */
struct ibv_qp* ibv_create_qp(struct ibv_pd* pd, struct ibv_qp_init_attr* qp_init_attr);
int ibv_modify_qp(struct ibv_qp* qp, struct ibv_qp_attr* attr, int attr_mask);
int ibv_query_qp(struct ibv_qp* qp, struct ibv_qp_attr* attr, int attr_mask, struct ibv_qp_init_attr* init_attr);
int ibv_destroy_qp(struct ibv_qp* qp);
struct ibv_qp_ex* ibv_qp_to_qp_ex(struct ibv_qp* qp);
int ibv_query_ece(struct ibv_qp* qp, struct ibv_ece* ece);
int ibv_set_ece(struct ibv_qp* qp, struct ibv_ece* ece);
int ibv_query_qp_data_in_order(struct ibv_qp* qp, enum ibv_wr_opcode op, uint32_t flags); /* 1 or 0 */
struct ibv_ah* ibv_create_ah(struct ibv_pd* pd, struct ibv_ah_attr* attr);
int ibv_destroy_ah(struct ibv_ah* ah);

/* Shared receive queues: IBVERBS_1.1. */
struct ibv_srq* ibv_create_srq(struct ibv_pd* pd, struct ibv_srq_init_attr* srq_init_attr);
int ibv_modify_srq(struct ibv_srq* srq, struct ibv_srq_attr* srq_attr, int srq_attr_mask);
int ibv_query_srq(struct ibv_srq* srq, struct ibv_srq_attr* srq_attr);
int ibv_destroy_srq(struct ibv_srq* srq);

/* Events, fork, text: IBVERBS_1.1. */
int ibv_get_async_event(struct ibv_context* context, struct ibv_async_event* event); /* 0 or -1 and errno */
void ibv_ack_async_event(struct ibv_async_event* event);
int ibv_fork_init(void);
const char* ibv_event_type_str(enum ibv_event_type event);
const char* ibv_wc_status_str(enum ibv_wc_status status);
const char* ibv_port_state_str(enum ibv_port_state port_state);
const char* ibv_node_type_str(enum ibv_node_type node_type);

/* What follows has no symbol: it goes through the context's own tables. */

static inline int weft_verbs_query_port(struct ibv_context* context, uint8_t port_num, struct ibv_port_attr* attr) {
  struct verbs_context* v = verbs_get_ctx(context);
  if (weft_verbs_ctx_has(v, offsetof(struct verbs_context, query_port)) && v->query_port)
    return v->query_port(context, port_num, attr, sizeof(*attr));
  memset(attr, 0, sizeof(*attr));
  return ibv_query_port(context, port_num, (struct _compat_ibv_port_attr*)attr);
}
#define ibv_query_port(context, port_num, port_attr) weft_verbs_query_port(context, port_num, port_attr)

static inline int ibv_query_gid_ex(struct ibv_context* context, uint32_t port_num, uint32_t gid_index,
                                   struct ibv_gid_entry* entry, uint32_t flags) {
  return _ibv_query_gid_ex(context, port_num, gid_index, entry, flags, sizeof(*entry));
}

static inline ssize_t ibv_query_gid_table(struct ibv_context* context, struct ibv_gid_entry* entries,
                                          size_t max_entries, uint32_t flags) {
  return _ibv_query_gid_table(context, entries, max_entries, flags, sizeof(*entries));
}

static inline int ibv_poll_cq(struct ibv_cq* cq, int num_entries, struct ibv_wc* wc) {
  return cq->context->ops.poll_cq(cq, num_entries, wc);
}

static inline int ibv_req_notify_cq(struct ibv_cq* cq, int solicited_only) {
  return cq->context->ops.req_notify_cq(cq, solicited_only);
}

static inline int ibv_post_send(struct ibv_qp* qp, struct ibv_send_wr* wr, struct ibv_send_wr** bad_wr) {
  return qp->context->ops.post_send(qp, wr, bad_wr);
}

static inline int ibv_post_recv(struct ibv_qp* qp, struct ibv_recv_wr* wr, struct ibv_recv_wr** bad_wr) {
  return qp->context->ops.post_recv(qp, wr, bad_wr);
}

static inline int ibv_post_srq_recv(struct ibv_srq* srq, struct ibv_recv_wr* wr, struct ibv_recv_wr** bad_wr) {
  return srq->context->ops.post_srq_recv(srq, wr, bad_wr);
}

#ifdef __cplusplus
}
#endif

#endif
