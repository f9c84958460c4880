/* Completion queues, completions, their channels and asynchronous events of libibverbs, restated; see device.h. */
#ifndef WEFT_VERBS_CQ_H
#define WEFT_VERBS_CQ_H

#include "device.h"

enum ibv_wc_status {
  IBV_WC_SUCCESS,
  IBV_WC_LOC_LEN_ERR,
  IBV_WC_LOC_QP_OP_ERR,
  IBV_WC_LOC_EEC_OP_ERR,
  IBV_WC_LOC_PROT_ERR,
  IBV_WC_WR_FLUSH_ERR,
  IBV_WC_MW_BIND_ERR,
  IBV_WC_BAD_RESP_ERR,
  IBV_WC_LOC_ACCESS_ERR,
  IBV_WC_REM_INV_REQ_ERR,
  IBV_WC_REM_ACCESS_ERR,
  IBV_WC_REM_OP_ERR,
  IBV_WC_RETRY_EXC_ERR,
  IBV_WC_RNR_RETRY_EXC_ERR,
  IBV_WC_LOC_RDD_VIOL_ERR,
  IBV_WC_REM_INV_RD_REQ_ERR,
  IBV_WC_REM_ABORT_ERR,
  IBV_WC_INV_EECN_ERR,
  IBV_WC_INV_EEC_STATE_ERR,
  IBV_WC_FATAL_ERR,
  IBV_WC_RESP_TIMEOUT_ERR,
  IBV_WC_GENERAL_ERR,
  IBV_WC_TM_ERR,
  IBV_WC_TM_RNDV_INCOMPLETE
};

/* A completion of the receive side has the bit IBV_WC_RECV. */
enum ibv_wc_opcode {
  IBV_WC_SEND,
  IBV_WC_RDMA_WRITE,
  IBV_WC_RDMA_READ,
  IBV_WC_COMP_SWAP,
  IBV_WC_FETCH_ADD,
  IBV_WC_BIND_MW,
  IBV_WC_LOCAL_INV,
  IBV_WC_TSO,
  IBV_WC_RECV = 1 << 7,
  IBV_WC_RECV_RDMA_WITH_IMM
};

enum ibv_wc_flags { IBV_WC_GRH = 1 << 0, IBV_WC_WITH_IMM = 1 << 1, IBV_WC_WITH_INV = 1 << 3 };

/* imm_data is in network byte order. With an error status only wr_id, status, vendor_err and qp_num mean anything. */
struct ibv_wc {
  uint64_t wr_id;
  enum ibv_wc_status status;
  enum ibv_wc_opcode opcode;
  uint32_t vendor_err;
  uint32_t byte_len;
  union {
    uint32_t imm_data;
    uint32_t invalidated_rkey;
  };
  uint32_t qp_num;
  uint32_t src_qp;
  unsigned int wc_flags;
  uint16_t pkey_index;
  uint16_t slid;
  uint8_t sl;
  uint8_t dlid_path_bits;
};

struct ibv_comp_channel {
  struct ibv_context* context;
  int fd;
  int refcnt;
};

struct ibv_cq {
  struct ibv_context* context;
  struct ibv_comp_channel* channel;
  void* cq_context;
  uint32_t handle;
  int cqe;

  pthread_mutex_t mutex; /* of the two counts below, which destroying waits for */
  pthread_cond_t cond;
  uint32_t comp_events_completed;
  uint32_t async_events_completed;
};

/* The extended CQ. perftest asks for one; weft does not. */
struct ibv_poll_cq_attr {
  uint32_t comp_mask;
};

struct ibv_wc_tm_info;

struct ibv_cq_ex {
  struct ibv_context* context;
  struct ibv_comp_channel* channel;
  void* cq_context;
  uint32_t handle;
  int cqe;

  pthread_mutex_t mutex;
  pthread_cond_t cond;
  uint32_t comp_events_completed;
  uint32_t async_events_completed;

  uint32_t comp_mask;
  enum ibv_wc_status status;
  uint64_t wr_id;
  int (*start_poll)(struct ibv_cq_ex* current, struct ibv_poll_cq_attr* attr);
  int (*next_poll)(struct ibv_cq_ex* current);
  void (*end_poll)(struct ibv_cq_ex* current);
  enum ibv_wc_opcode (*read_opcode)(struct ibv_cq_ex* current);
  uint32_t (*read_vendor_err)(struct ibv_cq_ex* current);
  uint32_t (*read_byte_len)(struct ibv_cq_ex* current);
  uint32_t (*read_imm_data)(struct ibv_cq_ex* current);
  uint32_t (*read_qp_num)(struct ibv_cq_ex* current);
  uint32_t (*read_src_qp)(struct ibv_cq_ex* current);
  unsigned int (*read_wc_flags)(struct ibv_cq_ex* current);
  uint32_t (*read_slid)(struct ibv_cq_ex* current);
  uint8_t (*read_sl)(struct ibv_cq_ex* current);
  uint8_t (*read_dlid_path_bits)(struct ibv_cq_ex* current);
  uint64_t (*read_completion_ts)(struct ibv_cq_ex* current);
  uint16_t (*read_cvlan)(struct ibv_cq_ex* current);
  uint32_t (*read_flow_tag)(struct ibv_cq_ex* current);
  void (*read_tm_info)(struct ibv_cq_ex* current, struct ibv_wc_tm_info* tm_info);
  uint64_t (*read_completion_wallclock_ns)(struct ibv_cq_ex* current);
};

struct ibv_cq_init_attr_ex {
  uint32_t cqe;
  void* cq_context;
  struct ibv_comp_channel* channel;
  uint32_t comp_vector;
  uint64_t wc_flags;
  uint32_t comp_mask;
  uint32_t flags;
  struct ibv_pd* parent_domain;
};

enum ibv_event_type {
  IBV_EVENT_CQ_ERR,
  IBV_EVENT_QP_FATAL,
  IBV_EVENT_QP_REQ_ERR,
  IBV_EVENT_QP_ACCESS_ERR,
  IBV_EVENT_COMM_EST,
  IBV_EVENT_SQ_DRAINED,
  IBV_EVENT_PATH_MIG,
  IBV_EVENT_PATH_MIG_ERR,
  IBV_EVENT_DEVICE_FATAL,
  IBV_EVENT_PORT_ACTIVE,
  IBV_EVENT_PORT_ERR,
  IBV_EVENT_LID_CHANGE,
  IBV_EVENT_PKEY_CHANGE,
  IBV_EVENT_SM_CHANGE,
  IBV_EVENT_SRQ_ERR,
  IBV_EVENT_SRQ_LIMIT_REACHED,
  IBV_EVENT_QP_LAST_WQE_REACHED,
  IBV_EVENT_CLIENT_REREGISTER,
  IBV_EVENT_GID_CHANGE,
  IBV_EVENT_WQ_FATAL,
  IBV_EVENT_DEVICE_SPEED_CHANGE /* rdma-core 63 and later */
};

struct ibv_qp;
struct ibv_srq;
struct ibv_wq;

struct ibv_async_event {
  union {
    struct ibv_cq* cq;
    struct ibv_qp* qp;
    struct ibv_srq* srq;
    struct ibv_wq* wq;
    int port_num;
  } element;
  enum ibv_event_type event_type;
};

#endif
