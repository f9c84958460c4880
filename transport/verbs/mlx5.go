package verbs

/*
#include <limits.h>
#include <stdlib.h>
#include "mlx5.h"
*/
import "C"

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"

	"weft/internal/report"
)

// mlx5Vendors are the vendor numbers of cards that libmlx5 may serve.
var mlx5Vendors = map[uint32]bool{0x02c9: true, 0x15b3: true}

// withoutMLX5 answers for a libmlx5 that is not there.
func withoutMLX5(c *calls) {
	c.mlx5Supported = func(object) syscall.Errno { return syscall.ENOSYS }
	c.mlx5DirectPath = func(object) (string, syscall.Errno) { return "", syscall.ENOSYS }
	c.mlx5RegDirect = func(object, uint64, uint64, uintptr, int, Access) (memoryKeys, syscall.Errno) {
		return memoryKeys{}, syscall.ENOSYS
	}
	c.mlx5AnyOrder = func(object) (int, syscall.Errno) { return 0, syscall.ENOSYS }
	c.mlx5CreateQP = func(object, object, object, object, qpCap) (object, uint32, qpCap, syscall.Errno) {
		return 0, 0, qpCap{}, syscall.ENOSYS
	}
}

// bindMLX5 loads the library of that name into the table.
func bindMLX5(c *calls, name string) error {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	var why [512]C.char
	m := C.weft_mlx5_load(C.uintptr_t(c.loaded), cname, &why[0], C.size_t(len(why)))
	if m == nil {
		return errors.New(strings.TrimSpace(goText(why[:])))
	}
	c.mlx5Supported = func(device object) syscall.Errno {
		defer placed()()
		return syscall.Errno(C.weft_mlx5_is_supported(m, C.uintptr_t(device)))
	}
	c.mlx5DirectPath = func(context object) (string, syscall.Errno) {
		defer placed()()
		var path [C.PATH_MAX]C.char
		rc := C.weft_mlx5_data_direct_path(m, C.uintptr_t(context), &path[0], C.size_t(len(path)-1))
		return goText(path[:]), syscall.Errno(rc)
	}
	c.mlx5RegDirect = func(pd object, offset, length uint64, iova uintptr, fd int, access Access) (memoryKeys, syscall.Errno) {
		defer placed()()
		var mr C.struct_weft_ibv_mr
		rc := C.weft_mlx5_reg_data_direct(m, C.uintptr_t(pd), C.uint64_t(offset), C.size_t(length), C.uint64_t(iova), C.int(fd), C.int(access), &mr)
		return memoryKeys{mr: object(mr.mr), lkey: uint32(mr.lkey), rkey: uint32(mr.rkey)}, syscall.Errno(rc)
	}
	c.mlx5AnyOrder = func(context object) (int, syscall.Errno) {
		defer placed()()
		var receives C.uint32_t
		rc := C.weft_mlx5_any_order(m, C.uintptr_t(context), &receives)
		return int(receives), syscall.Errno(rc)
	}
	c.mlx5CreateQP = func(context, pd, sendCQ, recvCQ object, want qpCap) (object, uint32, qpCap, syscall.Errno) {
		defer placed()()
		capacity := C.struct_ibv_qp_cap{
			max_send_wr: C.uint32_t(want.sendWR), max_recv_wr: C.uint32_t(want.recvWR),
			max_send_sge: 1, max_recv_sge: 1, max_inline_data: C.uint32_t(want.inline),
		}
		var qp C.uintptr_t
		var number C.uint32_t
		rc := C.weft_mlx5_create_qp(m, C.uintptr_t(context), C.uintptr_t(pd), C.uintptr_t(sendCQ), C.uintptr_t(recvCQ), &capacity, &qp, &number)
		got := qpCap{sendWR: int(capacity.max_send_wr), recvWR: int(capacity.max_recv_wr), inline: int(capacity.max_inline_data)}
		return object(qp), uint32(number), got, syscall.Errno(rc)
	}
	return nil
}

// loadMLX5 finds the libmlx5 that belongs to the libibverbs in use: the one
// beside it, if the user named a file, else the loader's.
func (p *Provider) loadMLX5() error {
	names := []string{"libmlx5.so.1", "libmlx5.so"}
	if strings.Contains(p.library, "/") {
		names = append([]string{filepath.Join(filepath.Dir(p.library), names[0])}, names...)
	}
	var whys []string
	for _, name := range names {
		err := bindMLX5(p.lib, name)
		if err == nil {
			return nil
		}
		whys = append(whys, err.Error())
	}
	return errors.New(strings.Join(whys, "; "))
}

// mlx5 reports whether libmlx5 serves a card; the library is loaded for the first card that it may serve.
func (a *adapter) mlx5(device object) bool {
	if !mlx5Vendors[a.attr.vendor] {
		return false
	}
	if !a.p.mlx5Tried {
		a.p.mlx5Tried = true
		if err := a.p.loadMLX5(); err != nil {
			a.p.log.Info(report.Init, "libmlx5 cannot be loaded, what its cards have beyond others stays unknown: %v", err)
		}
	}
	return a.p.lib.mlx5Supported(device) == 0
}
