/* mlx5.h: what weft calls of libmlx5 beyond libibverbs, found at run time: the data-direct path to GPU memory, and
 * queue pairs whose requests may arrive in any order. */
#ifndef WEFT_VERBS_MLX5_H
#define WEFT_VERBS_MLX5_H

#include "load.h"

struct weft_mlx5; /* functions of one loaded library; each may be missing and returns ENOSYS then */

/* Opens the library of that name, if it works on the objects of ibv, a struct weft_ibv. NULL: why says what was
 * wrong with it. */
struct weft_mlx5* weft_mlx5_load(uintptr_t ibv, const char* name, char* why, size_t size);

/* 0: a device of that library's; EOPNOTSUPP: another. */
int weft_mlx5_is_supported(const struct weft_mlx5* m, uintptr_t device);
/* The path of the data-direct PCI function below /sys; ENODEV: the card has none. */
int weft_mlx5_data_direct_path(const struct weft_mlx5* m, uintptr_t context, char* path, size_t size);
/* ibv_reg_dmabuf_mr through the data-direct function. */
int weft_mlx5_reg_data_direct(const struct weft_mlx5* m, uintptr_t pd, uint64_t offset, size_t length, uint64_t iova,
	int fd,
                              int access, struct weft_ibv_mr* out);

/* How many receives such a queue pair may have; 0: the card has none such. */
int weft_mlx5_any_order(const struct weft_mlx5* m, uintptr_t context, uint32_t* receives);
/* ibv_create_qp of one; cap says what was given. */
int weft_mlx5_create_qp(const struct weft_mlx5* m, uintptr_t context, uintptr_t pd, uintptr_t send_cq,
	uintptr_t recv_cq,
                        struct ibv_qp_cap* cap, uintptr_t* qp, uint32_t* number);

#endif
