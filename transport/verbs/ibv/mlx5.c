/* mlx5.c: libmlx5's functions by name and version, as load.c finds libibverbs'. */
#define _GNU_SOURCE
#include "mlx5.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	DATA_DIRECT = 1 << 0,    /* MLX5DV_REG_DMABUF_ACCESS_DATA_DIRECT */
	OOO_RECV_WRS = 1 << 16,  /* MLX5DV_CONTEXT_MASK_OOO_RECV_WRS */
	CREATE_FLAGS = 1 << 0,   /* MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS */
	CREATE_OOO_DP = 1 << 7,  /* MLX5DV_QP_CREATE_OOO_DP */
};

/* struct mlx5dv_context, as far as its ooo_recv_wrs_caps; a library that is older knows less of it. */
struct mlx5dv_context {
	uint8_t version;
	uint64_t flags, comp_mask;
	uint64_t others[19];
	uint32_t ooo_max_rc, ooo_others[4];
};
_Static_assert(sizeof(struct mlx5dv_context) == 200 &&
	offsetof(struct mlx5dv_context, ooo_max_rc) == 176, "as rdma-core has it");

struct mlx5dv_qp_init_attr {
	uint64_t comp_mask;
	uint32_t create_flags;
	uint64_t dc[2], send_ops_flags;
};
_Static_assert(sizeof(struct mlx5dv_qp_init_attr) == 40, "as rdma-core has it");

struct weft_mlx5 {
	bool (*is_supported)(struct ibv_device* device);
	int (*path)(struct ibv_context* context, char* buf, size_t size);
	struct ibv_mr* (*reg)(struct ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access,
		int more);
	int (*query)(struct ibv_context* context, struct mlx5dv_context* out);
	struct ibv_qp* (*create_qp)(struct ibv_context* context, struct ibv_qp_init_attr_ex* attr,
		struct mlx5dv_qp_init_attr* more);
};

struct weft_mlx5* weft_mlx5_load(uintptr_t ibv, const char* name, char* why, size_t size) {
	void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		const char* text = dlerror();
		snprintf(why, size, "%s", text ? text : name);
		return NULL;
	}
	/* A process may have two libraries of the name libibverbs.so.1: the loader gives libmlx5 the one that came
	 * first. */
	void* p = weft_symbol(library, "ibv_get_device_list", "IBVERBS_1.1");
	if (memcmp(&p, &((const struct weft_ibv*)ibv)->get_device_list, sizeof(p)) != 0) {
		snprintf(why, size, "%s: it works with another libibverbs of this process", name);
		dlclose(library);
		return NULL;
	}
	struct weft_mlx5* m = calloc(1, sizeof(*m));
	if (!m) {
		snprintf(why, size, "%s: out of memory", name);
		dlclose(library);
		return NULL;
	}
	p = weft_symbol(library, "mlx5dv_is_supported", "MLX5_1.8");
	memcpy(&m->is_supported, &p, sizeof(p));
	p = weft_symbol(library, "mlx5dv_get_data_direct_sysfs_path", "MLX5_1.25");
	memcpy(&m->path, &p, sizeof(p));
	p = weft_symbol(library, "mlx5dv_reg_dmabuf_mr", "MLX5_1.25");
	memcpy(&m->reg, &p, sizeof(p));
	p = weft_symbol(library, "mlx5dv_query_device", "MLX5_1.0");
	memcpy(&m->query, &p, sizeof(p));
	p = weft_symbol(library, "mlx5dv_create_qp", "MLX5_1.3");
	memcpy(&m->create_qp, &p, sizeof(p));
	return m; /* never unloaded, as libibverbs */
}

int weft_mlx5_is_supported(const struct weft_mlx5* m, uintptr_t device) {
	if (!m->is_supported) return ENOSYS;
	return m->is_supported((struct ibv_device*)device) ? 0 : EOPNOTSUPP;
}

int weft_mlx5_data_direct_path(const struct weft_mlx5* m, uintptr_t context, char* path, size_t size) {
	if (!m->path) return ENOSYS;
	errno = 0;
	int rc = m->path((struct ibv_context*)context, path, size);
	if (rc == -1) return errno > 0 ? errno : EIO;
	return rc < 0 ? -rc : rc;
}

int weft_mlx5_reg_data_direct(const struct weft_mlx5* m, uintptr_t pd, uint64_t offset, size_t length, uint64_t iova,
	int fd,
                              int access, struct weft_ibv_mr* out) {
	if (!m->reg) return ENOSYS;
	errno = 0;
	const struct ibv_mr* mr = m->reg((struct ibv_pd*)pd, offset, length, iova, fd, access, DATA_DIRECT);
	if (!mr) return errno > 0 ? errno : EIO;
	*out = (struct weft_ibv_mr){.mr = (uintptr_t)mr, .lkey = mr->lkey, .rkey = mr->rkey};
	return 0;
}

int weft_mlx5_any_order(const struct weft_mlx5* m, uintptr_t context, uint32_t* receives) {
	struct mlx5dv_context c = {.comp_mask = OOO_RECV_WRS};
	*receives = 0;
	if (!m->query || !m->create_qp) return ENOSYS;
	errno = 0;
	int rc = m->query((struct ibv_context*)context, &c);
	if (rc) return rc > 0 ? rc : errno > 0 ? errno : EIO;
	if (c.comp_mask & OOO_RECV_WRS) *receives = c.ooo_max_rc;
	return 0;
}

int weft_mlx5_create_qp(const struct weft_mlx5* m, uintptr_t context, uintptr_t pd, uintptr_t send_cq,
	uintptr_t recv_cq,
                        struct ibv_qp_cap* cap, uintptr_t* qp, uint32_t* number) {
	struct ibv_qp_init_attr_ex init = {
	    .send_cq = (struct ibv_cq*)send_cq, .recv_cq = (struct ibv_cq*)recv_cq, .cap = *cap, .qp_type = IBV_QPT_RC,
	    .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = (struct ibv_pd*)pd};
	struct mlx5dv_qp_init_attr more = {.comp_mask = CREATE_FLAGS, .create_flags = CREATE_OOO_DP};
	if (!m->create_qp) return ENOSYS;
	errno = 0;
	struct ibv_qp* q = m->create_qp((struct ibv_context*)context, &init, &more);
	if (!q) return errno > 0 ? errno : EIO;
	*cap = init.cap;
	*qp = (uintptr_t)q;
	*number = q->qp_num;
	return 0;
}
