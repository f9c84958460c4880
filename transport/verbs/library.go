package verbs

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -fvisibility=hidden -I${SRCDIR}/../../headers
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "load.h"
*/
import "C"

import (
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"unsafe"

	"weft/guest"
	_ "weft/headers" // rebuild when a header changes
)

// errMissing says that there is no file of that name where the loader looks.
var errMissing = errors.New("not found")

// loadLibrary opens the library of that name and finds its functions.
func loadLibrary(name string) (*calls, error) {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	var why [512]C.char
	var missing C.int
	v := C.weft_ibv_load(cname, &why[0], C.size_t(len(why)), &missing)
	if v == nil {
		text := strings.TrimSpace(C.GoString(&why[0]))
		if missing != 0 {
			return nil, errMissing
		}
		return nil, errors.New(text)
	}
	return bind(v), nil
}

// placed takes a place for a call that may take long: all but those of the data path, and of events that are there, whose
// acknowledgement a destroy waits for.
func placed() (give func()) { return guest.VerbsPlaces.Take() }

// bind makes the Go table over one loaded library.
func bind(v *C.struct_weft_ibv) *calls {
	c := &calls{loaded: object(uintptr(unsafe.Pointer(v))), lacks: map[string]bool{
		"ibv_fork_init":        v.fork_init == nil,
		"ibv_query_port_speed": v.query_port_speed == nil,
		"ibv_query_gid_table":  v.query_gid_table == nil,
		"ibv_reg_mr_iova2":     v.reg_mr_iova2 == nil,
		"ibv_reg_dmabuf_mr":    v.reg_dmabuf_mr == nil,
		"ibv_query_ece":        v.query_ece == nil,
		"ibv_set_ece":          v.set_ece == nil,
	}}
	c.forkInit = func() syscall.Errno {
		defer placed()()
		return syscall.Errno(C.weft_ibv_fork_init(v))
	}
	bindDevices(c, v)
	bindMemory(c, v)
	bindQueues(c, v)
	withoutMLX5(c)
	return c
}

func bindDevices(c *calls, v *C.struct_weft_ibv) {
	c.getDeviceList = func() (object, []deviceEntry, syscall.Errno) {
		defer placed()()
		var list C.uintptr_t
		var n C.int
		if rc := C.weft_ibv_get_device_list(v, &list, &n); rc != 0 {
			return 0, nil, syscall.Errno(rc)
		}
		entries := make([]deviceEntry, int(n))
		for i := range entries {
			var device C.uintptr_t
			d := C.weft_ibv_device(list, C.int(i), &device)
			entries[i] = deviceEntry{
				device: object(device), name: goText(d.name[:]), sysfs: goText(d.ibdev_path[:]), transport: int32(d.transport_type),
			}
		}
		return object(list), entries, 0
	}
	c.freeDeviceList = func(list object) { C.weft_ibv_free_device_list(v, C.uintptr_t(list)) }
	c.openDevice = func(device object) (object, int, int, syscall.Errno) {
		defer placed()()
		var context C.uintptr_t
		var cmd, async C.int
		rc := C.weft_ibv_open_device(v, C.uintptr_t(device), &context, &cmd, &async)
		return object(context), int(cmd), int(async), syscall.Errno(rc)
	}
	c.closeDevice = func(context object) syscall.Errno {
		defer placed()()
		return syscall.Errno(C.weft_ibv_close_device(v, C.uintptr_t(context)))
	}
	c.queryDevice = func(context object) (deviceAttr, syscall.Errno) {
		defer placed()()
		var a C.struct_ibv_device_attr
		if rc := C.weft_ibv_query_device(v, C.uintptr_t(context), &a); rc != 0 {
			return deviceAttr{}, syscall.Errno(rc)
		}
		return deviceAttr{
			firmware: goText(a.fw_ver[:]), systemGUID: uint64(a.sys_image_guid), vendor: uint32(a.vendor_id), part: uint32(a.vendor_part_id),
			maxQP: int(a.max_qp), maxQPWR: int(a.max_qp_wr), maxCQ: int(a.max_cq), maxCQE: int(a.max_cqe),
			maxMR: int(a.max_mr), maxMRSize: uint64(a.max_mr_size), ports: uint8(a.phys_port_cnt),
		}, 0
	}
	c.queryPort = func(context object, port uint8) (portAttr, syscall.Errno) {
		defer placed()()
		var a C.struct_ibv_port_attr
		if rc := C.weft_ibv_query_port(v, C.uintptr_t(context), C.uint8_t(port), &a); rc != 0 {
			return portAttr{}, syscall.Errno(rc)
		}
		return portAttr{
			state: int32(a.state), linkLayer: uint8(a.link_layer), activeMTU: uint8(a.active_mtu), gidTableLen: int(a.gid_tbl_len),
			maxMessage: uint32(a.max_msg_sz), pkeyTableLen: uint16(a.pkey_tbl_len), lid: uint16(a.lid), activeWidth: uint8(a.active_width),
			activeSpeed: uint8(a.active_speed), activeSpeedEx: uint32(a.active_speed_ex), flags: uint8(a.flags),
		}, 0
	}
	c.queryPortSpeed = func(context object, port uint8) (uint64, syscall.Errno) {
		defer placed()()
		var speed C.uint64_t
		rc := C.weft_ibv_query_port_speed(v, C.uintptr_t(context), C.uint32_t(port), &speed)
		return uint64(speed), syscall.Errno(rc)
	}
	c.queryGID = func(context object, port uint8, index int) ([16]byte, syscall.Errno) {
		defer placed()()
		var gid [16]byte
		rc := C.weft_ibv_query_gid(v, C.uintptr_t(context), C.uint8_t(port), C.int(index), (*C.union_ibv_gid)(unsafe.Pointer(&gid)))
		return gid, syscall.Errno(rc)
	}
	c.queryGIDTable = func(context object, most int) ([]gidEntry, syscall.Errno) {
		defer placed()()
		raw := make([]C.struct_ibv_gid_entry, max(most, 1))
		var n C.size_t
		if rc := C.weft_ibv_query_gid_table(v, C.uintptr_t(context), &raw[0], C.size_t(len(raw)), &n); rc != 0 {
			return nil, syscall.Errno(rc)
		}
		var entries []gidEntry
		for _, e := range raw[:min(int(n), len(raw))] {
			entries = append(entries, gidEntry{
				port: uint8(e.port_num), gid: [16]byte(e.gid), index: int(e.gid_index), kind: GIDType(e.gid_type), ifIndex: int(e.ndev_ifindex),
			})
		}
		return entries, 0
	}
	c.queryPKey = func(context object, port uint8, index int) (uint16, syscall.Errno) {
		defer placed()()
		var key C.uint16_t
		rc := C.weft_ibv_query_pkey(v, C.uintptr_t(context), C.uint8_t(port), C.int(index), &key)
		return uint16(key), syscall.Errno(rc)
	}
	c.getAsyncEvent = func(context object) (asyncEvent, syscall.Errno) {
		var e C.struct_weft_ibv_event
		if rc := C.weft_ibv_get_async_event(v, C.uintptr_t(context), &e); rc != 0 {
			return asyncEvent{}, syscall.Errno(rc)
		}
		return asyncEvent{
			kind: EventKind(e._type), element: object(e.element), port: int(e.port), raw: *(*[16]byte)(unsafe.Pointer(&e.raw)),
		}, 0
	}
	c.ackAsyncEvent = func(event asyncEvent) {
		var e C.struct_weft_ibv_event
		*(*[16]byte)(unsafe.Pointer(&e.raw)) = event.raw
		C.weft_ibv_ack_async_event(v, &e)
	}
}

func bindMemory(c *calls, v *C.struct_weft_ibv) {
	keys := func(m C.struct_weft_ibv_mr, rc C.int) (memoryKeys, syscall.Errno) {
		return memoryKeys{mr: object(m.mr), lkey: uint32(m.lkey), rkey: uint32(m.rkey)}, syscall.Errno(rc)
	}
	c.allocPD = func(context object) (object, syscall.Errno) {
		defer placed()()
		var pd C.uintptr_t
		rc := C.weft_ibv_alloc_pd(v, C.uintptr_t(context), &pd)
		return object(pd), syscall.Errno(rc)
	}
	c.deallocPD = func(pd object) syscall.Errno {
		defer placed()()
		return syscall.Errno(C.weft_ibv_dealloc_pd(v, C.uintptr_t(pd)))
	}
	c.regMR = func(pd object, addr uintptr, length uint64, access Access) (memoryKeys, syscall.Errno) {
		defer placed()()
		var m C.struct_weft_ibv_mr
		rc := C.weft_ibv_reg_mr(v, C.uintptr_t(pd), C.uintptr_t(addr), C.size_t(length), C.int(access), &m)
		return keys(m, rc)
	}
	c.regMRIova2 = func(pd object, addr uintptr, length uint64, access Access) (memoryKeys, syscall.Errno) {
		defer placed()()
		var m C.struct_weft_ibv_mr
		rc := C.weft_ibv_reg_mr_iova2(v, C.uintptr_t(pd), C.uintptr_t(addr), C.size_t(length), C.uint(access), &m)
		return keys(m, rc)
	}
	c.regDmabufMR = func(pd object, offset, length uint64, iova uintptr, fd int, access Access) (memoryKeys, syscall.Errno) {
		defer placed()()
		var m C.struct_weft_ibv_mr
		rc := C.weft_ibv_reg_dmabuf_mr(v, C.uintptr_t(pd), C.uint64_t(offset), C.size_t(length), C.uint64_t(iova), C.int(fd), C.int(access), &m)
		return keys(m, rc)
	}
	c.deregMR = func(mr object) syscall.Errno {
		defer placed()()
		return syscall.Errno(C.weft_ibv_dereg_mr(v, C.uintptr_t(mr)))
	}
}

func bindQueues(c *calls, v *C.struct_weft_ibv) {
	c.createCQ = func(context object, cqe int) (object, int, syscall.Errno) {
		defer placed()()
		var cq C.uintptr_t
		var got C.int
		rc := C.weft_ibv_create_cq(v, C.uintptr_t(context), C.int(cqe), &cq, &got)
		return object(cq), int(got), syscall.Errno(rc)
	}
	c.destroyCQ = func(cq object) syscall.Errno {
		defer placed()()
		return syscall.Errno(C.weft_ibv_destroy_cq(v, C.uintptr_t(cq)))
	}
	c.createQP = func(pd, sendCQ, recvCQ object, want qpCap) (object, uint32, qpCap, syscall.Errno) {
		defer placed()()
		rawCap := C.struct_ibv_qp_cap{
			max_send_wr: C.uint32_t(want.sendWR), max_recv_wr: C.uint32_t(want.recvWR),
			max_send_sge: 1, max_recv_sge: 1, max_inline_data: C.uint32_t(want.inline),
		}
		var qp C.uintptr_t
		var number C.uint32_t
		rc := C.weft_ibv_create_qp(v, C.uintptr_t(pd), C.uintptr_t(sendCQ), C.uintptr_t(recvCQ), &rawCap, &qp, &number)
		got := qpCap{sendWR: int(rawCap.max_send_wr), recvWR: int(rawCap.max_recv_wr), inline: int(rawCap.max_inline_data)}
		return object(qp), uint32(number), got, syscall.Errno(rc)
	}
	c.modifyQP = func(qp object, attr *qpAttr) syscall.Errno {
		defer placed()()
		raw := rawAttr(attr)
		return syscall.Errno(C.weft_ibv_modify_qp(v, C.uintptr_t(qp), &raw, C.int(attr.mask)))
	}
	c.queryQP = func(qp object) (qpAttr, syscall.Errno) {
		defer placed()()
		var raw C.struct_ibv_qp_attr
		mask := C.IBV_QP_STATE | C.IBV_QP_PORT | C.IBV_QP_SQ_PSN | C.IBV_QP_RQ_PSN | C.IBV_QP_PKEY_INDEX | C.IBV_QP_AV | C.IBV_QP_TIMEOUT | C.IBV_QP_RETRY_CNT
		rc := C.weft_ibv_query_qp(v, C.uintptr_t(qp), C.int(mask), &raw)
		return qpAttr{mask: mask, state: QPState(raw.qp_state), port: uint8(raw.port_num), sqPSN: uint32(raw.sq_psn), rqPSN: uint32(raw.rq_psn),
			pkeyIndex: uint16(raw.pkey_index), timeout: uint8(raw.timeout), retry: uint8(raw.retry_cnt),
			path: addressHandle{trafficClass: uint8(raw.ah_attr.grh.traffic_class), sl: uint8(raw.ah_attr.sl), port: uint8(raw.ah_attr.port_num)},
		}, syscall.Errno(rc)
	}
	c.destroyQP = func(qp object) syscall.Errno {
		defer placed()()
		return syscall.Errno(C.weft_ibv_destroy_qp(v, C.uintptr_t(qp)))
	}
	c.postProof = func(qp object, from uintptr, lkey uint32, bytes int, addr uint64, rkey uint32) syscall.Errno {
		return syscall.Errno(C.weft_ibv_post_proof(C.uintptr_t(qp), C.uint64_t(from), C.uint32_t(lkey), C.uint32_t(bytes), C.uint64_t(addr), C.uint32_t(rkey)))
	}
	c.pollOne = func(cq object) (polled, int, syscall.Errno) {
		var wc C.struct_ibv_wc
		n := C.weft_ibv_poll_one(C.uintptr_t(cq), &wc)
		if n < 0 {
			return polled{}, 0, syscall.EIO
		}
		p := polled{Completion: Completion{Status: wc.status, Vendor: uint32(wc.vendor_err), QPN: uint32(wc.qp_num)}}
		switch {
		case wc.wr_id == C.WEFT_PROOF:
			p.of = ofProof
		case wc.opcode&C.IBV_WC_RECV != 0:
			p.of = ofReceive
		}
		return p, int(n), 0
	}
	c.queryECE = func(qp object) (ECE, syscall.Errno) {
		defer placed()()
		var e C.struct_ibv_ece
		rc := C.weft_ibv_query_ece(v, C.uintptr_t(qp), &e)
		return ECE{Vendor: uint32(e.vendor_id), Options: uint32(e.options), CompMask: uint32(e.comp_mask)}, syscall.Errno(rc)
	}
	c.setECE = func(qp object, ece ECE) syscall.Errno {
		defer placed()()
		e := C.struct_ibv_ece{vendor_id: C.uint32_t(ece.Vendor), options: C.uint32_t(ece.Options), comp_mask: C.uint32_t(ece.CompMask)}
		return syscall.Errno(C.weft_ibv_set_ece(v, C.uintptr_t(qp), &e))
	}
}

func rawAttr(a *qpAttr) C.struct_ibv_qp_attr {
	raw := C.struct_ibv_qp_attr{
		qp_state: uint32(a.state), path_mtu: uint32(a.mtu), rq_psn: C.uint32_t(a.rqPSN), sq_psn: C.uint32_t(a.sqPSN),
		dest_qp_num: C.uint32_t(a.destQP), qp_access_flags: C.uint(a.access), pkey_index: C.uint16_t(a.pkeyIndex),
		max_rd_atomic: C.uint8_t(a.maxRd), max_dest_rd_atomic: C.uint8_t(a.maxDestRd), min_rnr_timer: C.uint8_t(a.minRNR),
		port_num: C.uint8_t(a.port), timeout: C.uint8_t(a.timeout), retry_cnt: C.uint8_t(a.retry), rnr_retry: C.uint8_t(a.rnrRetry),
	}
	ah := &raw.ah_attr
	ah.dlid, ah.sl, ah.port_num = C.uint16_t(a.path.dlid), C.uint8_t(a.path.sl), C.uint8_t(a.path.port)
	if a.path.global {
		ah.is_global = 1
		ah.grh.sgid_index, ah.grh.hop_limit = C.uint8_t(a.path.sgidIndex), C.uint8_t(a.path.hopLimit)
		ah.grh.traffic_class = C.uint8_t(a.path.trafficClass)
		*(*[16]byte)(unsafe.Pointer(&ah.grh.dgid)) = gidBytes(a.path.dgid)
	}
	return raw
}

func gidBytes(a netip.Addr) [16]byte {
	if !a.IsValid() {
		return [16]byte{}
	}
	return a.As16()
}

func goText(text []C.char) string { return C.GoString(&text[0]) }
