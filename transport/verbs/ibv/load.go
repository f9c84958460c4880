package ibv

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -fvisibility=hidden -I${SRCDIR}/../../../headers
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "load.h"
*/
import "C"

import (
	"errors"
	"strings"
	"syscall"
	"unsafe"

	"weft/guest"
	_ "weft/headers" // rebuild when a header changes
	"weft/transport/rdma"
)

// ErrMissing says that there is no file of that name where the loader looks.
var ErrMissing = errors.New("not found")

// Load opens the library of that name and finds its functions.
func Load(name string) (*Calls, error) {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	var why [512]C.char
	var missing C.int
	v := C.weft_ibv_load(cname, &why[0], C.size_t(len(why)), &missing)
	if v == nil {
		text := strings.TrimSpace(C.GoString(&why[0]))
		if missing != 0 {
			return nil, ErrMissing
		}
		return nil, errors.New(text)
	}
	return bind(v), nil
}

// placed takes a place for a call that may take long: all but those of the data path, and of events that are there, whose
// acknowledgement a destroy waits for.
func placed() (give func()) { return guest.VerbsPlaces.Take() }

// bind makes the Go table over one loaded library.
func bind(v *C.struct_weft_ibv) *Calls {
	c := &Calls{loaded: Object(uintptr(unsafe.Pointer(v))), Lacks: map[string]bool{
		"ibv_fork_init":        v.fork_init == nil,
		"ibv_query_port_speed": v.query_port_speed == nil,
		"ibv_query_gid_table":  v.query_gid_table == nil,
		"ibv_reg_mr_iova2":     v.reg_mr_iova2 == nil,
		"ibv_reg_dmabuf_mr":    v.reg_dmabuf_mr == nil,
		"ibv_query_ece":        v.query_ece == nil,
		"ibv_set_ece":          v.set_ece == nil,
	}}
	c.ForkInit = func() syscall.Errno {
		defer placed()()
		return syscall.Errno(C.weft_ibv_fork_init(v))
	}
	bindDevices(c, v)
	bindMemory(c, v)
	bindQueues(c, v)
	WithoutMLX5(c)
	return c
}

func bindDevices(c *Calls, v *C.struct_weft_ibv) {
	c.GetDeviceList = func() (Object, []DeviceEntry, syscall.Errno) {
		defer placed()()
		var list C.uintptr_t
		var n C.int
		if rc := C.weft_ibv_get_device_list(v, &list, &n); rc != 0 {
			return 0, nil, syscall.Errno(rc)
		}
		entries := make([]DeviceEntry, int(n))
		for i := range entries {
			var device C.uintptr_t
			d := C.weft_ibv_device(list, C.int(i), &device)
			entries[i] = DeviceEntry{
				Device: Object(device), Name: goText(d.name[:]), Sysfs: goText(d.ibdev_path[:]), Transport: int32(d.transport_type),
			}
		}
		return Object(list), entries, 0
	}
	c.FreeDeviceList = func(list Object) { C.weft_ibv_free_device_list(v, C.uintptr_t(list)) }
	c.OpenDevice = func(device Object) (Object, int, int, syscall.Errno) {
		defer placed()()
		var context C.uintptr_t
		var cmd, async C.int
		rc := C.weft_ibv_open_device(v, C.uintptr_t(device), &context, &cmd, &async)
		return Object(context), int(cmd), int(async), syscall.Errno(rc)
	}
	c.CloseDevice = func(context Object) syscall.Errno {
		defer placed()()
		return syscall.Errno(C.weft_ibv_close_device(v, C.uintptr_t(context)))
	}
	c.QueryDevice = func(context Object) (DeviceAttr, syscall.Errno) {
		defer placed()()
		var a C.struct_ibv_device_attr
		if rc := C.weft_ibv_query_device(v, C.uintptr_t(context), &a); rc != 0 {
			return DeviceAttr{}, syscall.Errno(rc)
		}
		return DeviceAttr{
			Firmware: goText(a.fw_ver[:]), SystemGUID: uint64(a.sys_image_guid), Vendor: uint32(a.vendor_id),
			MaxQP: int(a.max_qp), MaxQPWR: int(a.max_qp_wr), MaxCQE: int(a.max_cqe), Ports: uint8(a.phys_port_cnt),
		}, 0
	}
	c.QueryPort = func(context Object, port uint8) (PortAttr, syscall.Errno) {
		defer placed()()
		var a C.struct_ibv_port_attr
		if rc := C.weft_ibv_query_port(v, C.uintptr_t(context), C.uint8_t(port), &a); rc != 0 {
			return PortAttr{}, syscall.Errno(rc)
		}
		return PortAttr{
			State: int32(a.state), LinkLayer: uint8(a.link_layer), ActiveMTU: uint8(a.active_mtu), GIDTableLen: int(a.gid_tbl_len),
			MaxMessage: uint32(a.max_msg_sz), PKeyTableLen: uint16(a.pkey_tbl_len), LID: uint16(a.lid), ActiveWidth: uint8(a.active_width),
			ActiveSpeed: uint8(a.active_speed), ActiveSpeedEx: uint32(a.active_speed_ex), Flags: uint8(a.flags),
		}, 0
	}
	c.QueryPortSpeed = func(context Object, port uint8) (uint64, syscall.Errno) {
		defer placed()()
		var speed C.uint64_t
		rc := C.weft_ibv_query_port_speed(v, C.uintptr_t(context), C.uint32_t(port), &speed)
		return uint64(speed), syscall.Errno(rc)
	}
	c.QueryGID = func(context Object, port uint8, index int) ([16]byte, syscall.Errno) {
		defer placed()()
		var gid [16]byte
		rc := C.weft_ibv_query_gid(v, C.uintptr_t(context), C.uint8_t(port), C.int(index), (*C.union_ibv_gid)(unsafe.Pointer(&gid)))
		return gid, syscall.Errno(rc)
	}
	c.QueryGIDTable = func(context Object, most int) ([]GIDEntry, syscall.Errno) {
		defer placed()()
		raw := make([]C.struct_ibv_gid_entry, max(most, 1))
		var n C.size_t
		if rc := C.weft_ibv_query_gid_table(v, C.uintptr_t(context), &raw[0], C.size_t(len(raw)), &n); rc != 0 {
			return nil, syscall.Errno(rc)
		}
		var entries []GIDEntry
		for _, e := range raw[:min(int(n), len(raw))] {
			entries = append(entries, GIDEntry{
				Port: uint8(e.port_num), GID: [16]byte(e.gid), Index: int(e.gid_index), Kind: GIDType(e.gid_type), IfIndex: int(e.ndev_ifindex),
			})
		}
		return entries, 0
	}
	c.QueryPKey = func(context Object, port uint8, index int) (uint16, syscall.Errno) {
		defer placed()()
		var key C.uint16_t
		rc := C.weft_ibv_query_pkey(v, C.uintptr_t(context), C.uint8_t(port), C.int(index), &key)
		return uint16(key), syscall.Errno(rc)
	}
	c.GetAsyncEvent = func(context Object) (AsyncEvent, syscall.Errno) {
		var e C.struct_weft_ibv_event
		if rc := C.weft_ibv_get_async_event(v, C.uintptr_t(context), &e); rc != 0 {
			return AsyncEvent{}, syscall.Errno(rc)
		}
		return AsyncEvent{
			Kind: EventKind(e._type), Element: Object(e.element), Port: int(e.port), raw: *(*[16]byte)(unsafe.Pointer(&e.raw)),
		}, 0
	}
	c.AckAsyncEvent = func(event AsyncEvent) {
		var e C.struct_weft_ibv_event
		*(*[16]byte)(unsafe.Pointer(&e.raw)) = event.raw
		C.weft_ibv_ack_async_event(v, &e)
	}
}

func bindMemory(c *Calls, v *C.struct_weft_ibv) {
	keys := func(m C.struct_weft_ibv_mr, rc C.int) (MemoryKeys, syscall.Errno) {
		return MemoryKeys{MR: Object(m.mr), LKey: uint32(m.lkey), RKey: uint32(m.rkey)}, syscall.Errno(rc)
	}
	c.AllocPD = func(context Object) (Object, syscall.Errno) {
		defer placed()()
		var pd C.uintptr_t
		rc := C.weft_ibv_alloc_pd(v, C.uintptr_t(context), &pd)
		return Object(pd), syscall.Errno(rc)
	}
	c.DeallocPD = func(pd Object) syscall.Errno {
		defer placed()()
		return syscall.Errno(C.weft_ibv_dealloc_pd(v, C.uintptr_t(pd)))
	}
	c.RegMR = func(pd Object, addr uintptr, length uint64, access Access) (MemoryKeys, syscall.Errno) {
		defer placed()()
		var m C.struct_weft_ibv_mr
		rc := C.weft_ibv_reg_mr(v, C.uintptr_t(pd), C.uintptr_t(addr), C.size_t(length), C.int(access), &m)
		return keys(m, rc)
	}
	c.RegMRIOVA2 = func(pd Object, addr uintptr, length uint64, access Access) (MemoryKeys, syscall.Errno) {
		defer placed()()
		var m C.struct_weft_ibv_mr
		rc := C.weft_ibv_reg_mr_iova2(v, C.uintptr_t(pd), C.uintptr_t(addr), C.size_t(length), C.uint(access), &m)
		return keys(m, rc)
	}
	c.RegDMABufMR = func(pd Object, offset, length uint64, iova uintptr, fd int, access Access) (MemoryKeys, syscall.Errno) {
		defer placed()()
		var m C.struct_weft_ibv_mr
		rc := C.weft_ibv_reg_dmabuf_mr(v, C.uintptr_t(pd), C.uint64_t(offset), C.size_t(length), C.uint64_t(iova), C.int(fd), C.int(access), &m)
		return keys(m, rc)
	}
	c.DeregMR = func(mr Object) syscall.Errno {
		defer placed()()
		return syscall.Errno(C.weft_ibv_dereg_mr(v, C.uintptr_t(mr)))
	}
}

func bindQueues(c *Calls, v *C.struct_weft_ibv) {
	c.CreateCQ = func(context Object, cqe int) (Object, int, syscall.Errno) {
		defer placed()()
		var cq C.uintptr_t
		var got C.int
		rc := C.weft_ibv_create_cq(v, C.uintptr_t(context), C.int(cqe), &cq, &got)
		return Object(cq), int(got), syscall.Errno(rc)
	}
	c.DestroyCQ = func(cq Object) syscall.Errno {
		defer placed()()
		return syscall.Errno(C.weft_ibv_destroy_cq(v, C.uintptr_t(cq)))
	}
	c.CreateQP = func(pd, sendCQ, recvCQ Object, want QPCap) (Object, uint32, QPCap, syscall.Errno) {
		defer placed()()
		rawCap := C.struct_ibv_qp_cap{
			max_send_wr: C.uint32_t(want.SendWR), max_recv_wr: C.uint32_t(want.RecvWR),
			max_send_sge: 1, max_recv_sge: 1, max_inline_data: C.uint32_t(want.Inline),
		}
		var qp C.uintptr_t
		var number C.uint32_t
		rc := C.weft_ibv_create_qp(v, C.uintptr_t(pd), C.uintptr_t(sendCQ), C.uintptr_t(recvCQ), &rawCap, &qp, &number)
		got := QPCap{SendWR: int(rawCap.max_send_wr), RecvWR: int(rawCap.max_recv_wr), Inline: int(rawCap.max_inline_data)}
		return Object(qp), uint32(number), got, syscall.Errno(rc)
	}
	c.ModifyQP = func(qp Object, attr *QPAttr) syscall.Errno {
		defer placed()()
		raw := rawAttr(attr)
		return syscall.Errno(C.weft_ibv_modify_qp(v, C.uintptr_t(qp), &raw, C.int(attr.Mask)))
	}
	c.QueryQP = func(qp Object) (QPAttr, syscall.Errno) {
		defer placed()()
		var raw C.struct_ibv_qp_attr
		mask := C.IBV_QP_STATE | C.IBV_QP_PORT | C.IBV_QP_SQ_PSN | C.IBV_QP_RQ_PSN | C.IBV_QP_PKEY_INDEX | C.IBV_QP_AV | C.IBV_QP_TIMEOUT | C.IBV_QP_RETRY_CNT
		rc := C.weft_ibv_query_qp(v, C.uintptr_t(qp), C.int(mask), &raw)
		return QPAttr{Mask: mask, State: QPState(raw.qp_state), Port: uint8(raw.port_num), SQPSN: uint32(raw.sq_psn), RQPSN: uint32(raw.rq_psn),
			PKeyIndex: uint16(raw.pkey_index), Timeout: uint8(raw.timeout), Retry: uint8(raw.retry_cnt),
			Path: AddressHandle{TrafficClass: uint8(raw.ah_attr.grh.traffic_class), SL: uint8(raw.ah_attr.sl), Port: uint8(raw.ah_attr.port_num)},
		}, syscall.Errno(rc)
	}
	c.DestroyQP = func(qp Object) syscall.Errno {
		defer placed()()
		return syscall.Errno(C.weft_ibv_destroy_qp(v, C.uintptr_t(qp)))
	}
	c.PostProof = func(qp Object, from uintptr, lkey uint32, bytes int, addr uint64, rkey uint32) syscall.Errno {
		return syscall.Errno(C.weft_ibv_post_proof(C.uintptr_t(qp), C.uint64_t(from), C.uint32_t(lkey), C.uint32_t(bytes), C.uint64_t(addr), C.uint32_t(rkey)))
	}
	c.PollOne = func(cq Object) (Polled, int, syscall.Errno) {
		var wc C.struct_ibv_wc
		n := C.weft_ibv_poll_one(C.uintptr_t(cq), &wc)
		if n < 0 {
			return Polled{}, 0, syscall.EIO
		}
		p := Polled{Status: wc.status, Vendor: uint32(wc.vendor_err), QPN: uint32(wc.qp_num)}
		switch {
		case wc.wr_id == C.WEFT_PROOF:
			p.Of = OfProof
		case wc.opcode&C.IBV_WC_RECV != 0:
			p.Of = OfReceive
		}
		return p, int(n), 0
	}
	c.QueryECE = func(qp Object) (ECE, syscall.Errno) {
		defer placed()()
		var e C.struct_ibv_ece
		rc := C.weft_ibv_query_ece(v, C.uintptr_t(qp), &e)
		return ECE{Vendor: uint32(e.vendor_id), Options: uint32(e.options), CompMask: uint32(e.comp_mask)}, syscall.Errno(rc)
	}
	c.SetECE = func(qp Object, ece ECE) syscall.Errno {
		defer placed()()
		e := C.struct_ibv_ece{vendor_id: C.uint32_t(ece.Vendor), options: C.uint32_t(ece.Options), comp_mask: C.uint32_t(ece.CompMask)}
		return syscall.Errno(C.weft_ibv_set_ece(v, C.uintptr_t(qp), &e))
	}
}

func rawAttr(a *QPAttr) C.struct_ibv_qp_attr {
	raw := C.struct_ibv_qp_attr{
		qp_state: uint32(a.State), path_mtu: uint32(a.MTU), rq_psn: C.uint32_t(a.RQPSN), sq_psn: C.uint32_t(a.SQPSN),
		dest_qp_num: C.uint32_t(a.DestQP), qp_access_flags: C.uint(a.Access), pkey_index: C.uint16_t(a.PKeyIndex),
		max_rd_atomic: C.uint8_t(a.MaxRd), max_dest_rd_atomic: C.uint8_t(a.MaxDestRd), min_rnr_timer: C.uint8_t(a.MinRNR),
		port_num: C.uint8_t(a.Port), timeout: C.uint8_t(a.Timeout), retry_cnt: C.uint8_t(a.Retry), rnr_retry: C.uint8_t(a.RNRRetry),
	}
	ah := &raw.ah_attr
	ah.dlid, ah.sl, ah.port_num = C.uint16_t(a.Path.DLID), C.uint8_t(a.Path.SL), C.uint8_t(a.Path.Port)
	if a.Path.Global {
		ah.is_global = 1
		ah.grh.sgid_index, ah.grh.hop_limit = C.uint8_t(a.Path.SGIDIndex), C.uint8_t(a.Path.HopLimit)
		ah.grh.traffic_class = C.uint8_t(a.Path.TrafficClass)
		*(*[16]byte)(unsafe.Pointer(&ah.grh.dgid)) = rdma.GIDBytes(a.Path.DGID)
	}
	return raw
}

func goText(text []C.char) string { return C.GoString(&text[0]) }
