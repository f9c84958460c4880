/* Work requests of libibverbs and the queue pair that takes them call by call, restated; see device.h. */
#ifndef WEFT_VERBS_WR_H
#define WEFT_VERBS_WR_H

#include "qp.h"

enum ibv_wr_opcode {
  IBV_WR_RDMA_WRITE,
  IBV_WR_RDMA_WRITE_WITH_IMM,
  IBV_WR_SEND,
  IBV_WR_SEND_WITH_IMM,
  IBV_WR_RDMA_READ,
  IBV_WR_ATOMIC_CMP_AND_SWP,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_LOCAL_INV,
  IBV_WR_BIND_MW,
  IBV_WR_SEND_WITH_INV,
  IBV_WR_TSO,
  IBV_WR_DRIVER1
};

enum ibv_send_flags {
  IBV_SEND_FENCE = 1 << 0,
  IBV_SEND_SIGNALED = 1 << 1,
  IBV_SEND_SOLICITED = 1 << 2,
  IBV_SEND_INLINE = 1 << 3,
  IBV_SEND_IP_CSUM = 1 << 4
};

/* imm_data is in network byte order. */
struct ibv_send_wr {
  uint64_t wr_id;
  struct ibv_send_wr* next;
  struct ibv_sge* sg_list;
  int num_sge;
  enum ibv_wr_opcode opcode;
  unsigned int send_flags;
  union {
    uint32_t imm_data;
    uint32_t invalidate_rkey;
  };
  union {
    struct {
      uint64_t remote_addr;
      uint32_t rkey;
    } rdma;
    struct {
      uint64_t remote_addr;
      uint64_t compare_add;
      uint64_t swap;
      uint32_t rkey;
    } atomic;
    struct {
      struct ibv_ah* ah;
      uint32_t remote_qpn;
      uint32_t remote_qkey;
    } ud;
  } wr;
  union {
    struct {
      uint32_t remote_srqn;
    } xrc;
  } qp_type;
  union {
    struct {
      struct ibv_mw* mw;
      uint32_t rkey;
      struct ibv_mw_bind_info bind_info;
    } bind_mw;
    struct {
      void* hdr;
      uint16_t hdr_sz;
      uint16_t mss;
    } tso;
  };
};

struct ibv_recv_wr {
  uint64_t wr_id;
  struct ibv_recv_wr* next;
  struct ibv_sge* sg_list;
  int num_sge;
};

/* A QP of ibv_create_qp_ex: wr_start, then for each request the opcode and its data, then wr_complete. */
struct ibv_qp_ex {
  struct ibv_qp qp_base;
  uint64_t comp_mask;
  uint64_t wr_id;
  unsigned int wr_flags; /* enum ibv_send_flags */

  void (*wr_atomic_cmp_swp)(struct ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr, uint64_t compare, uint64_t swap);
  void (*wr_atomic_fetch_add)(struct ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr, uint64_t add);
  void (*wr_bind_mw)(struct ibv_qp_ex* qp, struct ibv_mw* mw, uint32_t rkey, const struct ibv_mw_bind_info* bind_info);
  void (*wr_local_inv)(struct ibv_qp_ex* qp, uint32_t invalidate_rkey);
  void (*wr_rdma_read)(struct ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr);
  void (*wr_rdma_write)(struct ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr);
  void (*wr_rdma_write_imm)(struct ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr, uint32_t imm_data);

  void (*wr_send)(struct ibv_qp_ex* qp);
  void (*wr_send_imm)(struct ibv_qp_ex* qp, uint32_t imm_data);
  void (*wr_send_inv)(struct ibv_qp_ex* qp, uint32_t invalidate_rkey);
  void (*wr_send_tso)(struct ibv_qp_ex* qp, void* hdr, uint16_t hdr_sz, uint16_t mss);

  void (*wr_set_ud_addr)(struct ibv_qp_ex* qp, struct ibv_ah* ah, uint32_t remote_qpn, uint32_t remote_qkey);
  void (*wr_set_xrc_srqn)(struct ibv_qp_ex* qp, uint32_t remote_srqn);

  void (*wr_set_inline_data)(struct ibv_qp_ex* qp, void* addr, size_t length);
  void (*wr_set_inline_data_list)(struct ibv_qp_ex* qp, size_t num_buf, const struct ibv_data_buf* buf_list);
  void (*wr_set_sge)(struct ibv_qp_ex* qp, uint32_t lkey, uint64_t addr, uint32_t length);
  void (*wr_set_sge_list)(struct ibv_qp_ex* qp, size_t num_sge, const struct ibv_sge* sg_list);

  void (*wr_start)(struct ibv_qp_ex* qp);
  int (*wr_complete)(struct ibv_qp_ex* qp);
  void (*wr_abort)(struct ibv_qp_ex* qp);

  void (*wr_atomic_write)(struct ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr, const void* atomic_wr);
  void (*wr_flush)(struct ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr, size_t len, uint8_t type, uint8_t level);
};

#endif
