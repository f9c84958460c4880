/* The opened device of libibverbs and the tables of functions in it, restated; see device.h. Programs call some functions
 * of a provider directly through these tables: the inline half of the library's header. */
#ifndef WEFT_VERBS_CONTEXT_H
#define WEFT_VERBS_CONTEXT_H

#include "wr.h"

struct _compat_ibv_port_attr;
struct ibv_mw_bind;

/* The slots with a leading underscore are the library's own. */
struct ibv_context_ops {
  int (*_compat_query_device)(struct ibv_context* context, struct ibv_device_attr* device_attr);
  int (*_compat_query_port)(struct ibv_context* context, uint8_t port_num, struct _compat_ibv_port_attr* port_attr);
  void* (*_compat_alloc_pd)(void);
  void* (*_compat_dealloc_pd)(void);
  void* (*_compat_reg_mr)(void);
  void* (*_compat_rereg_mr)(void);
  void* (*_compat_dereg_mr)(void);
  struct ibv_mw* (*alloc_mw)(struct ibv_pd* pd, enum ibv_mw_type type);
  int (*bind_mw)(struct ibv_qp* qp, struct ibv_mw* mw, struct ibv_mw_bind* mw_bind);
  int (*dealloc_mw)(struct ibv_mw* mw);
  void* (*_compat_create_cq)(void);
  int (*poll_cq)(struct ibv_cq* cq, int num_entries, struct ibv_wc* wc);
  int (*req_notify_cq)(struct ibv_cq* cq, int solicited_only);
  void* (*_compat_cq_event)(void);
  void* (*_compat_resize_cq)(void);
  void* (*_compat_destroy_cq)(void);
  void* (*_compat_create_srq)(void);
  void* (*_compat_modify_srq)(void);
  void* (*_compat_query_srq)(void);
  void* (*_compat_destroy_srq)(void);
  int (*post_srq_recv)(struct ibv_srq* srq, struct ibv_recv_wr* recv_wr, struct ibv_recv_wr** bad_recv_wr);
  void* (*_compat_create_qp)(void);
  void* (*_compat_query_qp)(void);
  void* (*_compat_modify_qp)(void);
  void* (*_compat_destroy_qp)(void);
  int (*post_send)(struct ibv_qp* qp, struct ibv_send_wr* wr, struct ibv_send_wr** bad_wr);
  int (*post_recv)(struct ibv_qp* qp, struct ibv_recv_wr* wr, struct ibv_recv_wr** bad_wr);
  void* (*_compat_create_ah)(void);
  void* (*_compat_destroy_ah)(void);
  void* (*_compat_attach_mcast)(void);
  void* (*_compat_detach_mcast)(void);
  void* (*_compat_async_event)(void);
};

struct ibv_context {
  struct ibv_device* device;
  struct ibv_context_ops ops;
  int cmd_fd;
  int async_fd;
  int num_comp_vectors;
  pthread_mutex_t mutex;
  void* abi_compat; /* all ones: a verbs_context surrounds this */
};

/* What the table below mentions and nothing here uses. */
enum ib_uverbs_advise_mr_advice {
  IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH,
  IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE,
  IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT
};
struct ibv_alloc_dm_attr;
struct ibv_buf;
struct ibv_counter_attach_attr;
struct ibv_counters;
struct ibv_counters_init_attr;
struct ibv_device_attr_ex;
struct ibv_dm;
struct ibv_dmah;
struct ibv_dmah_init_attr;
struct ibv_flow;
struct ibv_flow_action;
struct ibv_flow_action_esp_attr;
struct ibv_flow_attr;
struct ibv_modify_cq_attr;
struct ibv_mr_init_attr;
struct ibv_ops_wr;
struct ibv_parent_domain_init_attr;
struct ibv_qp_open_attr;
struct ibv_qp_rate_limit_attr;
struct ibv_query_device_ex_input;
struct ibv_rwq_ind_table_init_attr;
struct ibv_srq_init_attr_ex;
struct ibv_td;
struct ibv_td_init_attr;
struct ibv_values_ex;
struct ibv_wq_attr;
struct ibv_wq_init_attr;
struct ibv_xrcd_init_attr;
struct verbs_ex_private;

/* Grows at its beginning: whoever allocated it says in sz how much of it there is, counted from the end. */
struct verbs_context {
  void (*free_buf)(struct ibv_buf* buf);
  void* (*alloc_buf)(struct ibv_pd* pd, size_t size, struct ibv_buf** buf);
  int (*dm_export_dmabuf_fd)(struct ibv_dm* dm);
  struct ibv_mr* (*reg_mr_ex)(struct ibv_pd* pd, struct ibv_mr_init_attr* mr_init_attr);
  int (*dealloc_dmah)(struct ibv_dmah* dmah);
  struct ibv_dmah* (*alloc_dmah)(struct ibv_context* context, struct ibv_dmah_init_attr* attr);
  int (*query_port)(struct ibv_context* context, uint8_t port_num, struct ibv_port_attr* port_attr, size_t port_attr_len);
  int (*advise_mr)(struct ibv_pd* pd, enum ib_uverbs_advise_mr_advice advice, uint32_t flags, struct ibv_sge* sg_list,
                   uint32_t num_sges);
  struct ibv_mr* (*alloc_null_mr)(struct ibv_pd* pd);
  int (*read_counters)(struct ibv_counters* counters, uint64_t* counters_value, uint32_t ncounters, uint32_t flags);
  int (*attach_counters_point_flow)(struct ibv_counters* counters, struct ibv_counter_attach_attr* attr,
                                    struct ibv_flow* flow);
  struct ibv_counters* (*create_counters)(struct ibv_context* context, struct ibv_counters_init_attr* init_attr);
  int (*destroy_counters)(struct ibv_counters* counters);
  struct ibv_mr* (*reg_dm_mr)(struct ibv_pd* pd, struct ibv_dm* dm, uint64_t dm_offset, size_t length,
                              unsigned int access);
  struct ibv_dm* (*alloc_dm)(struct ibv_context* context, struct ibv_alloc_dm_attr* attr);
  int (*free_dm)(struct ibv_dm* dm);
  int (*modify_flow_action_esp)(struct ibv_flow_action* action, struct ibv_flow_action_esp_attr* attr);
  int (*destroy_flow_action)(struct ibv_flow_action* action);
  struct ibv_flow_action* (*create_flow_action_esp)(struct ibv_context* context, struct ibv_flow_action_esp_attr* attr);
  int (*modify_qp_rate_limit)(struct ibv_qp* qp, struct ibv_qp_rate_limit_attr* attr);
  struct ibv_pd* (*alloc_parent_domain)(struct ibv_context* context, struct ibv_parent_domain_init_attr* attr);
  int (*dealloc_td)(struct ibv_td* td);
  struct ibv_td* (*alloc_td)(struct ibv_context* context, struct ibv_td_init_attr* init_attr);
  int (*modify_cq)(struct ibv_cq* cq, struct ibv_modify_cq_attr* attr);
  int (*post_srq_ops)(struct ibv_srq* srq, struct ibv_ops_wr* op, struct ibv_ops_wr** bad_op);
  int (*destroy_rwq_ind_table)(struct ibv_rwq_ind_table* rwq_ind_table);
  struct ibv_rwq_ind_table* (*create_rwq_ind_table)(struct ibv_context* context,
                                                    struct ibv_rwq_ind_table_init_attr* init_attr);
  int (*destroy_wq)(struct ibv_wq* wq);
  int (*modify_wq)(struct ibv_wq* wq, struct ibv_wq_attr* wq_attr);
  struct ibv_wq* (*create_wq)(struct ibv_context* context, struct ibv_wq_init_attr* wq_init_attr);
  int (*query_rt_values)(struct ibv_context* context, struct ibv_values_ex* values);
  struct ibv_cq_ex* (*create_cq_ex)(struct ibv_context* context, struct ibv_cq_init_attr_ex* init_attr);
  struct verbs_ex_private* priv;
  int (*query_device_ex)(struct ibv_context* context, const struct ibv_query_device_ex_input* input,
                         struct ibv_device_attr_ex* attr, size_t attr_size);
  int (*ibv_destroy_flow)(struct ibv_flow* flow);
  void (*ABI_placeholder2)(void);
  struct ibv_flow* (*ibv_create_flow)(struct ibv_qp* qp, struct ibv_flow_attr* flow_attr);
  void (*ABI_placeholder1)(void);
  struct ibv_qp* (*open_qp)(struct ibv_context* context, struct ibv_qp_open_attr* attr);
  struct ibv_qp* (*create_qp_ex)(struct ibv_context* context, struct ibv_qp_init_attr_ex* qp_init_attr_ex);
  int (*get_srq_num)(struct ibv_srq* srq, uint32_t* srq_num);
  struct ibv_srq* (*create_srq_ex)(struct ibv_context* context, struct ibv_srq_init_attr_ex* srq_init_attr_ex);
  struct ibv_xrcd* (*open_xrcd)(struct ibv_context* context, struct ibv_xrcd_init_attr* xrcd_init_attr);
  int (*close_xrcd)(struct ibv_xrcd* xrcd);
  uint64_t _ABI_placeholder3;
  size_t sz;
  struct ibv_context context;
};

#define WEFT_VERBS_ABI_IS_EXTENDED ((void*)UINTPTR_MAX)

/* The table around a context, or NULL from a library older than it. */
static inline struct verbs_context* verbs_get_ctx(struct ibv_context* context) {
  if (context->abi_compat != WEFT_VERBS_ABI_IS_EXTENDED) return NULL;
  return (struct verbs_context*)((uintptr_t)context - offsetof(struct verbs_context, context));
}

/* Whether the table reaches up to the member at this offset. */
static inline int weft_verbs_ctx_has(const struct verbs_context* v, size_t offset) {
  return v != NULL && v->sz >= sizeof(*v) - offset;
}

#endif
