package ibv

/*
#include <limits.h>
#include <stdlib.h>
#include "mlx5.h"
*/
import "C"

import (
	"errors"
	"strings"
	"syscall"
	"unsafe"
)

// WithoutMLX5 makes c's functions of libmlx5 return ENOSYS, as on a machine that has none.
func WithoutMLX5(c *Calls) {
	c.MLX5Supported = func(Object) syscall.Errno { return syscall.ENOSYS }
	c.MLX5DirectPath = func(Object) (string, syscall.Errno) { return "", syscall.ENOSYS }
	c.MLX5RegDirect = func(Object, uint64, uint64, uintptr, int, Access) (MemoryKeys, syscall.Errno) {
		return MemoryKeys{}, syscall.ENOSYS
	}
	c.MLX5AnyOrder = func(Object) (int, syscall.Errno) { return 0, syscall.ENOSYS }
	c.MLX5CreateQP = func(Object, Object, Object, Object, QPCap) (Object, uint32, QPCap, syscall.Errno) {
		return 0, 0, QPCap{}, syscall.ENOSYS
	}
}

// LoadMLX5 loads the library of that name into the table.
func LoadMLX5(c *Calls, name string) error {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	var why [512]C.char
	m := C.weft_mlx5_load(C.uintptr_t(c.loaded), cname, &why[0], C.size_t(len(why)))
	if m == nil {
		return errors.New(strings.TrimSpace(goText(why[:])))
	}
	c.MLX5Supported = func(device Object) syscall.Errno {
		defer placed()()
		return syscall.Errno(C.weft_mlx5_is_supported(m, C.uintptr_t(device)))
	}
	c.MLX5DirectPath = func(context Object) (string, syscall.Errno) {
		defer placed()()
		var path [C.PATH_MAX]C.char
		rc := C.weft_mlx5_data_direct_path(m, C.uintptr_t(context), &path[0], C.size_t(len(path)-1))
		return goText(path[:]), syscall.Errno(rc)
	}
	c.MLX5RegDirect = func(pd Object, offset, length uint64, iova uintptr, fd int, access Access) (MemoryKeys, syscall.Errno) {
		defer placed()()
		var mr C.struct_weft_ibv_mr
		rc := C.weft_mlx5_reg_data_direct(m, C.uintptr_t(pd), C.uint64_t(offset), C.size_t(length), C.uint64_t(iova), C.int(fd), C.int(access), &mr)
		return MemoryKeys{MR: Object(mr.mr), LKey: uint32(mr.lkey), RKey: uint32(mr.rkey)}, syscall.Errno(rc)
	}
	c.MLX5AnyOrder = func(context Object) (int, syscall.Errno) {
		defer placed()()
		var receives C.uint32_t
		rc := C.weft_mlx5_any_order(m, C.uintptr_t(context), &receives)
		return int(receives), syscall.Errno(rc)
	}
	c.MLX5CreateQP = func(context, pd, sendCQ, recvCQ Object, want QPCap) (Object, uint32, QPCap, syscall.Errno) {
		defer placed()()
		capacity := C.struct_ibv_qp_cap{
			max_send_wr: C.uint32_t(want.SendWR), max_recv_wr: C.uint32_t(want.RecvWR),
			max_send_sge: 1, max_recv_sge: 1, max_inline_data: C.uint32_t(want.Inline),
		}
		var qp C.uintptr_t
		var number C.uint32_t
		rc := C.weft_mlx5_create_qp(m, C.uintptr_t(context), C.uintptr_t(pd), C.uintptr_t(sendCQ), C.uintptr_t(recvCQ), &capacity, &qp, &number)
		got := QPCap{SendWR: int(capacity.max_send_wr), RecvWR: int(capacity.max_recv_wr), Inline: int(capacity.max_inline_data)}
		return Object(qp), uint32(number), got, syscall.Errno(rc)
	}
	return nil
}
