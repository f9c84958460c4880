// Package ibv calls libibverbs, and libmlx5 beside it, which are found at run
// time: their functions as a table, and of their vocabulary what weft uses. What
// to call when is decided in the packages beside it.
package ibv

import (
	"net/netip"
	"syscall"

	"weft/transport/rdma"
)

// Object is one of libibverbs' structures. Go passes it on and never follows it.
type Object uintptr

// Calls are libibverbs' functions, without its prefix and with one way to
// fail: the last result, 0 or the errno. An optional one that the library
// lacks returns ENOSYS.
type Calls struct {
	ForkInit       func() syscall.Errno
	GetDeviceList  func() (list Object, devices []DeviceEntry, errno syscall.Errno)
	FreeDeviceList func(list Object)
	OpenDevice     func(device Object) (context Object, cmdFD, asyncFD int, errno syscall.Errno)
	CloseDevice    func(context Object) syscall.Errno
	QueryDevice    func(context Object) (DeviceAttr, syscall.Errno)
	QueryPort      func(context Object, port uint8) (PortAttr, syscall.Errno)
	QueryPortSpeed func(context Object, port uint8) (hundredMbps uint64, errno syscall.Errno)
	QueryGID       func(context Object, port uint8, index int) ([16]byte, syscall.Errno)
	QueryGIDTable  func(context Object, most int) ([]GIDEntry, syscall.Errno)
	QueryPKey      func(context Object, port uint8, index int) (uint16, syscall.Errno)

	AllocPD     func(context Object) (pd Object, errno syscall.Errno)
	DeallocPD   func(pd Object) syscall.Errno
	RegMR       func(pd Object, addr uintptr, length uint64, access Access) (MemoryKeys, syscall.Errno)
	RegMRIOVA2  func(pd Object, addr uintptr, length uint64, access Access) (MemoryKeys, syscall.Errno)
	RegDMABufMR func(pd Object, offset, length uint64, iova uintptr, fd int, access Access) (MemoryKeys, syscall.Errno)
	DeregMR     func(mr Object) syscall.Errno

	CreateCQ  func(context Object, cqe int) (cq Object, got int, errno syscall.Errno)
	DestroyCQ func(cq Object) syscall.Errno
	CreateQP  func(pd, sendCQ, recvCQ Object, want QPCap) (qp Object, number uint32, got QPCap, errno syscall.Errno)
	ModifyQP  func(qp Object, attr *QPAttr) syscall.Errno
	QueryQP   func(qp Object) (QPAttr, syscall.Errno)
	DestroyQP func(qp Object) syscall.Errno
	QueryECE  func(qp Object) (ECE, syscall.Errno)
	SetECE    func(qp Object, ece ECE) syscall.Errno

	// PostProof posts a signaled WRITE; PollOne takes at most one completion.
	PostProof func(qp Object, from uintptr, lkey uint32, bytes int, addr uint64, rkey uint32) syscall.Errno
	PollOne   func(cq Object) (c Polled, n int, errno syscall.Errno)

	// GetAsyncEvent returns EAGAIN when there is none: the descriptor does not block.
	GetAsyncEvent func(context Object) (AsyncEvent, syscall.Errno)
	AckAsyncEvent func(event AsyncEvent)

	// Of libmlx5. Supported returns 0 for a card of its own; the path is below
	// sysfs; a registration goes through the data-direct function.
	MLX5Supported  func(device Object) syscall.Errno
	MLX5DirectPath func(context Object) (path string, errno syscall.Errno)
	MLX5RegDirect  func(pd Object, offset, length uint64, iova uintptr, fd int, access Access) (MemoryKeys, syscall.Errno)

	// Queue pairs whose requests arrive in any order, and how many receives one may have.
	MLX5AnyOrder func(context Object) (receives int, errno syscall.Errno)
	MLX5CreateQP func(context, pd, sendCQ, recvCQ Object, want QPCap) (qp Object, number uint32, got QPCap, errno syscall.Errno)

	loaded Object          // struct weft_ibv
	Lacks  map[string]bool // optional functions that the library does not have, by their full name
}

// DeviceEntry is struct ibv_device as the list shows it.
type DeviceEntry struct {
	Device    Object
	Name      string // mlx5_0
	Sysfs     string // /sys/class/infiniband/mlx5_0
	Transport int32  // enum ibv_transport_type
}

const TransportIB = 0 // InfiniBand and RoCE; iWARP and others connect in ways of their own

// DeviceAttr is what weft uses of struct ibv_device_attr.
type DeviceAttr struct {
	Firmware   string
	SystemGUID uint64 // as the device gives it, in network byte order
	Vendor     uint32
	MaxQP      int
	MaxQPWR    int
	MaxCQE     int
	Ports      uint8
}

// PortAttr is what weft uses of struct ibv_port_attr.
type PortAttr struct {
	State         int32
	LinkLayer     uint8
	ActiveMTU     uint8 // enum ibv_mtu
	GIDTableLen   int
	MaxMessage    uint32
	PKeyTableLen  uint16
	LID           uint16
	ActiveWidth   uint8
	ActiveSpeed   uint8
	ActiveSpeedEx uint32
	Flags         uint8
}

const (
	PortActive     = 4 // IBV_PORT_ACTIVE
	LinkInfiniBand = rdma.LinkInfiniBand
	LinkEthernet   = rdma.LinkEthernet
	GRHRequired    = 1 // IBV_QPF_GRH_REQUIRED
)

// MTUBytes translates enum ibv_mtu; a value from a peer may be anything, and what is none is 0.
func MTUBytes(code uint8) int {
	if code < 1 || code > 5 {
		return 0
	}
	return 128 << code
}

// GIDEntry is struct ibv_gid_entry.
type GIDEntry struct {
	Port    uint8
	GID     [16]byte
	Index   int
	Kind    GIDType
	IfIndex int
}

// MemoryKeys is what registering gives.
type MemoryKeys struct {
	MR         Object
	LKey, RKey uint32
}

// QPCap is struct ibv_qp_cap with one scatter entry a request.
type QPCap struct {
	SendWR, RecvWR, Inline int
}

// QPAttr is what weft sets of struct ibv_qp_attr; Mask says which parts count.
type QPAttr struct {
	Mask      int
	State     QPState
	PKeyIndex uint16
	Port      uint8
	Access    Access
	MTU       uint8
	DestQP    uint32
	RQPSN     uint32
	SQPSN     uint32
	MaxDestRd uint8
	MinRNR    uint8
	Timeout   uint8
	Retry     uint8
	RNRRetry  uint8
	MaxRd     uint8
	Path      AddressHandle
}

// AddressHandle is struct ibv_ah_attr.
type AddressHandle struct {
	Global       bool
	DGID         netip.Addr
	SGIDIndex    uint8
	HopLimit     uint8
	TrafficClass uint8
	DLID         uint16
	SL           uint8
	Port         uint8 // of the local device
}

// Polled is what weft uses of struct ibv_wc.
type Polled struct {
	Status uint32 // enum ibv_wc_status
	Vendor uint32
	QPN    uint32
	Of     Request // of a receive only if it succeeded
}

// Request is what a completion is of.
type Request int

const (
	OfSend Request = iota
	OfProof
	OfReceive
)

// AsyncEvent is struct ibv_async_event; raw is what the library wants back.
type AsyncEvent struct {
	Kind    EventKind
	Element Object
	Port    int
	raw     [16]byte
}
