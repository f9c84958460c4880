/* A stand-in for libmlx5, with what NCCL's net_ib looks up: whether a device is of mlx5 ("mlx5" in the
 * configuration), its out-of-order receive capability ("ooo"), its data-direct path ("data_direct"); and, refusing,
 * what perftest links. */
#include "sim.h"

#include <string.h>

struct mlx5dv_context { /* as far as its last member here; what lies between is zero */
  uint8_t version;
  uint64_t flags, comp_mask;
  uint8_t others[128];
  uint64_t max_dc_rd_atom, max_dc_init_rd_atom;
  uint32_t reg_c0[2];
  uint32_t ooo_max_rc, ooo_max_others[4];
};
struct mlx5dv_qp_init_attr { uint64_t comp_mask; uint32_t create_flags; };
enum { OOO_RECV_WRS = 1 << 16, MASK_CREATE_FLAGS = 1, CREATE_OOO_DP = 1 << 7 };

/* No header declares these; whoever looks them up casts. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static struct devconf* conf(struct ibv_device* d) { return ((struct vdev*)d)->conf; }

PUBLIC _Bool mlx5dv_is_supported(struct ibv_device* device) { return conf(device)->mlx5 != 0; }

PUBLIC int mlx5dv_query_device(struct ibv_context* ctx, struct mlx5dv_context* out) {
  struct devconf* c = conf(ctx->device);
  if (!c->mlx5) return EOPNOTSUPP;
  int want = (out->comp_mask & OOO_RECV_WRS) && c->ooo > 0;
  out->version = 0;
  out->flags = 0;
  out->comp_mask = want ? OOO_RECV_WRS : 0;
  if (want) out->ooo_max_rc = (uint32_t)c->ooo;
  return 0;
}

PUBLIC int mlx5dv_get_data_direct_sysfs_path(struct ibv_context* ctx, char* buf, size_t size) {
  struct devconf* c = conf(ctx->device);
  if (!c->data_direct[0]) return ENODEV;
  if (strlen(c->data_direct) >= size) return ENOSPC;
  strcpy(buf, c->data_direct);
  return 0;
}

PUBLIC struct ibv_mr* mlx5dv_reg_dmabuf_mr(struct ibv_pd* pd, uint64_t offset, size_t len, uint64_t iova, int fd,
  int access, int flags) {
  if (!conf(pd->context->device)->data_direct[0]) { errno = EOPNOTSUPP; return NULL; }
  return ibv_reg_dmabuf_mr(pd, offset, len, iova, fd, access);
}

PUBLIC struct ibv_qp* mlx5dv_create_qp(struct ibv_context* ctx, struct ibv_qp_init_attr_ex* attr,
  struct mlx5dv_qp_init_attr* more) {
  struct devconf* c = conf(ctx->device);
  uint32_t flags = more && (more->comp_mask & MASK_CREATE_FLAGS) ? more->create_flags : 0;
  if (!c->mlx5 || (flags & ~(uint32_t)CREATE_OOO_DP) || (flags && !c->ooo)) { errno = EOPNOTSUPP; return NULL; }
  return ibv_create_qp(attr->pd, (struct ibv_qp_init_attr*)attr);
}

#define REFUSE(name) PUBLIC void* name(void) { errno = EOPNOTSUPP; return NULL; }
REFUSE(mlx5dv_create_mkey) REFUSE(mlx5dv_destroy_mkey) REFUSE(mlx5dv_crypto_login) REFUSE(mlx5dv_dek_create)
REFUSE(mlx5dv_dek_destroy) REFUSE(mlx5dv_devx_general_cmd) REFUSE(mlx5dv_open_device)
REFUSE(mlx5dv_qp_ex_from_ibv_qp_ex)
