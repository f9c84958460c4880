/* Queue pairs, address vectors, shared receive queues and ECE of libibverbs, restated; see device.h. */
#ifndef WEFT_VERBS_QP_H
#define WEFT_VERBS_QP_H

#include "cq.h"
#include "memory.h"

struct ibv_global_route {
  union ibv_gid dgid;
  uint32_t flow_label;
  uint8_t sgid_index;
  uint8_t hop_limit;
  uint8_t traffic_class;
};

struct ibv_ah_attr {
  struct ibv_global_route grh; /* read if is_global */
  uint16_t dlid;
  uint8_t sl;
  uint8_t src_path_bits;
  uint8_t static_rate;
  uint8_t is_global;
  uint8_t port_num; /* of the local device */
};

struct ibv_ah {
  struct ibv_context* context;
  struct ibv_pd* pd;
  uint32_t handle;
};

enum ibv_qp_type {
  IBV_QPT_RC = 2,
  IBV_QPT_UC,
  IBV_QPT_UD,
  IBV_QPT_RAW_PACKET = 8,
  IBV_QPT_XRC_SEND = 9,
  IBV_QPT_XRC_RECV,
  IBV_QPT_DRIVER = 0xff
};

/* What create_qp returns here may be more than what was asked for. */
struct ibv_qp_cap {
  uint32_t max_send_wr;
  uint32_t max_recv_wr;
  uint32_t max_send_sge;
  uint32_t max_recv_sge;
  uint32_t max_inline_data;
};

struct ibv_qp_init_attr {
  void* qp_context;
  struct ibv_cq* send_cq;
  struct ibv_cq* recv_cq;
  struct ibv_srq* srq;
  struct ibv_qp_cap cap;
  enum ibv_qp_type qp_type;
  int sq_sig_all;
};

enum ibv_qp_init_attr_mask {
  IBV_QP_INIT_ATTR_PD = 1 << 0,
  IBV_QP_INIT_ATTR_XRCD = 1 << 1,
  IBV_QP_INIT_ATTR_CREATE_FLAGS = 1 << 2,
  IBV_QP_INIT_ATTR_MAX_TSO_HEADER = 1 << 3,
  IBV_QP_INIT_ATTR_IND_TABLE = 1 << 4,
  IBV_QP_INIT_ATTR_RX_HASH = 1 << 5,
  IBV_QP_INIT_ATTR_SEND_OPS_FLAGS = 1 << 6
};

enum ibv_qp_create_send_ops_flags {
  IBV_QP_EX_WITH_RDMA_WRITE = 1 << 0,
  IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM = 1 << 1,
  IBV_QP_EX_WITH_SEND = 1 << 2,
  IBV_QP_EX_WITH_SEND_WITH_IMM = 1 << 3,
  IBV_QP_EX_WITH_RDMA_READ = 1 << 4,
  IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP = 1 << 5,
  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD = 1 << 6
};

struct ibv_rx_hash_conf {
  uint8_t rx_hash_function;
  uint8_t rx_hash_key_len;
  uint8_t* rx_hash_key;
  uint64_t rx_hash_fields_mask;
};

struct ibv_xrcd;
struct ibv_rwq_ind_table;

struct ibv_qp_init_attr_ex {
  void* qp_context;
  struct ibv_cq* send_cq;
  struct ibv_cq* recv_cq;
  struct ibv_srq* srq;
  struct ibv_qp_cap cap;
  enum ibv_qp_type qp_type;
  int sq_sig_all;

  uint32_t comp_mask;
  struct ibv_pd* pd;
  struct ibv_xrcd* xrcd;
  uint32_t create_flags;
  uint16_t max_tso_header;
  struct ibv_rwq_ind_table* rwq_ind_tbl;
  struct ibv_rx_hash_conf rx_hash_conf;
  uint32_t source_qpn;
  uint64_t send_ops_flags;
};

enum ibv_qp_attr_mask {
  IBV_QP_STATE = 1 << 0,
  IBV_QP_CUR_STATE = 1 << 1,
  IBV_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
  IBV_QP_ACCESS_FLAGS = 1 << 3,
  IBV_QP_PKEY_INDEX = 1 << 4,
  IBV_QP_PORT = 1 << 5,
  IBV_QP_QKEY = 1 << 6,
  IBV_QP_AV = 1 << 7,
  IBV_QP_PATH_MTU = 1 << 8,
  IBV_QP_TIMEOUT = 1 << 9,
  IBV_QP_RETRY_CNT = 1 << 10,
  IBV_QP_RNR_RETRY = 1 << 11,
  IBV_QP_RQ_PSN = 1 << 12,
  IBV_QP_MAX_QP_RD_ATOMIC = 1 << 13,
  IBV_QP_ALT_PATH = 1 << 14,
  IBV_QP_MIN_RNR_TIMER = 1 << 15,
  IBV_QP_SQ_PSN = 1 << 16,
  IBV_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
  IBV_QP_PATH_MIG_STATE = 1 << 18,
  IBV_QP_CAP = 1 << 19,
  IBV_QP_DEST_QPN = 1 << 20,
  IBV_QP_RATE_LIMIT = 1 << 25
};

enum ibv_qp_state {
  IBV_QPS_RESET,
  IBV_QPS_INIT,
  IBV_QPS_RTR,
  IBV_QPS_RTS,
  IBV_QPS_SQD,
  IBV_QPS_SQE,
  IBV_QPS_ERR,
  IBV_QPS_UNKNOWN
};

enum ibv_mig_state { IBV_MIG_MIGRATED, IBV_MIG_REARM, IBV_MIG_ARMED };

struct ibv_qp_attr {
  enum ibv_qp_state qp_state;
  enum ibv_qp_state cur_qp_state;
  enum ibv_mtu path_mtu;
  enum ibv_mig_state path_mig_state;
  uint32_t qkey;
  uint32_t rq_psn;
  uint32_t sq_psn;
  uint32_t dest_qp_num;
  unsigned int qp_access_flags;
  struct ibv_qp_cap cap;
  struct ibv_ah_attr ah_attr;
  struct ibv_ah_attr alt_ah_attr;
  uint16_t pkey_index;
  uint16_t alt_pkey_index;
  uint8_t en_sqd_async_notify;
  uint8_t sq_draining;
  uint8_t max_rd_atomic;
  uint8_t max_dest_rd_atomic;
  uint8_t min_rnr_timer;
  uint8_t port_num;
  uint8_t timeout;   /* 4.096 us * 2^timeout; 0 is never */
  uint8_t retry_cnt; /* 3 bits */
  uint8_t rnr_retry; /* 3 bits; 7 is for ever */
  uint8_t alt_port_num;
  uint8_t alt_timeout;
  uint32_t rate_limit;
};

struct ibv_qp {
  struct ibv_context* context;
  void* qp_context;
  struct ibv_pd* pd;
  struct ibv_cq* send_cq;
  struct ibv_cq* recv_cq;
  struct ibv_srq* srq;
  uint32_t handle;
  uint32_t qp_num;
  enum ibv_qp_state state;
  enum ibv_qp_type qp_type;

  pthread_mutex_t mutex;
  pthread_cond_t cond;
  uint32_t events_completed;
};

enum ibv_srq_attr_mask { IBV_SRQ_MAX_WR = 1 << 0, IBV_SRQ_LIMIT = 1 << 1 };

struct ibv_srq_attr {
  uint32_t max_wr;
  uint32_t max_sge;
  uint32_t srq_limit;
};

struct ibv_srq_init_attr {
  void* srq_context;
  struct ibv_srq_attr attr;
};

struct ibv_srq {
  struct ibv_context* context;
  void* srq_context;
  struct ibv_pd* pd;
  uint32_t handle;

  pthread_mutex_t mutex;
  pthread_cond_t cond;
  uint32_t events_completed;
};

/* Enhanced connection establishment: options that both ends of a connection agree on before RTR. */
struct ibv_ece {
  uint32_t vendor_id;
  uint32_t options;
  uint32_t comp_mask;
};

#endif
