/* mlx5.c: libmlx5's functions by name and version, as load.c finds libibverbs'. */
#define _GNU_SOURCE
#include "mlx5.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DATA_DIRECT = 1 << 0 }; /* MLX5DV_REG_DMABUF_ACCESS_DATA_DIRECT */

struct weft_mlx5 {
	bool (*is_supported)(struct ibv_device* device);
	int (*path)(struct ibv_context* context, char* buf, size_t size);
	struct ibv_mr* (*reg)(struct ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access, int more);
};

struct weft_mlx5* weft_mlx5_load(uintptr_t ibv, const char* name, char* why, size_t size) {
	void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		const char* text = dlerror();
		snprintf(why, size, "%s", text ? text : name);
		return NULL;
	}
	/* A process may have two libraries of the name libibverbs.so.1: the loader gives libmlx5 the one that came first. */
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

int weft_mlx5_reg_data_direct(const struct weft_mlx5* m, uintptr_t pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                              int access, struct weft_ibv_mr* out) {
	if (!m->reg) return ENOSYS;
	errno = 0;
	const struct ibv_mr* mr = m->reg((struct ibv_pd*)pd, offset, length, iova, fd, access, DATA_DIRECT);
	if (!mr) return errno > 0 ? errno : EIO;
	*out = (struct weft_ibv_mr){.mr = (uintptr_t)mr, .lkey = mr->lkey, .rkey = mr->rkey};
	return 0;
}
