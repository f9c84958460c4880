/* Protection domains and memory regions of libibverbs, restated; see device.h. */
#ifndef WEFT_VERBS_MEMORY_H
#define WEFT_VERBS_MEMORY_H

#include "device.h"

/* A library or kernel that does not know a flag of this range ignores it (ibv_reg_mr_iova2 only). */
#define IBV_ACCESS_OPTIONAL_FIRST (1 << 20)
#define IBV_ACCESS_OPTIONAL_RANGE 0x3ff00000

enum ibv_access_flags {
  IBV_ACCESS_LOCAL_WRITE = 1,
  IBV_ACCESS_REMOTE_WRITE = 1 << 1,
  IBV_ACCESS_REMOTE_READ = 1 << 2,
  IBV_ACCESS_REMOTE_ATOMIC = 1 << 3,
  IBV_ACCESS_MW_BIND = 1 << 4,
  IBV_ACCESS_ZERO_BASED = 1 << 5,
  IBV_ACCESS_ON_DEMAND = 1 << 6,
  IBV_ACCESS_HUGETLB = 1 << 7,
  IBV_ACCESS_RELAXED_ORDERING = IBV_ACCESS_OPTIONAL_FIRST
};

struct ibv_pd {
  struct ibv_context* context;
  uint32_t handle;
};

struct ibv_mr {
  struct ibv_context* context;
  struct ibv_pd* pd;
  void* addr;
  size_t length;
  uint32_t handle;
  uint32_t lkey;
  uint32_t rkey;
};

enum ibv_rereg_mr_flags {
  IBV_REREG_MR_CHANGE_TRANSLATION = 1 << 0,
  IBV_REREG_MR_CHANGE_PD = 1 << 1,
  IBV_REREG_MR_CHANGE_ACCESS = 1 << 2
};

/* Memory windows: here only for the layouts and op tables that mention them. */
enum ibv_mw_type { IBV_MW_TYPE_1 = 1, IBV_MW_TYPE_2 = 2 };

struct ibv_mw {
  struct ibv_context* context;
  struct ibv_pd* pd;
  uint32_t rkey;
  uint32_t handle;
  enum ibv_mw_type type;
};

struct ibv_mw_bind_info {
  struct ibv_mr* mr;
  uint64_t addr;
  uint64_t length;
  unsigned int mw_access_flags;
};

struct ibv_sge {
  uint64_t addr;
  uint32_t length;
  uint32_t lkey;
};

struct ibv_data_buf {
  void* addr;
  size_t length;
};

#endif
