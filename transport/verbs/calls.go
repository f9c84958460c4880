package verbs

import (
	"net/netip"
	"syscall"
)

// object is one of libibverbs' structures. Go passes it on and never follows it.
type object uintptr

// calls are libibverbs' functions, without its prefix and with one way to
// fail: the last result, 0 or the errno. An optional one that the library
// lacks answers ENOSYS.
type calls struct {
	forkInit       func() syscall.Errno
	getDeviceList  func() (list object, devices []deviceEntry, errno syscall.Errno)
	freeDeviceList func(list object)
	openDevice     func(device object) (context object, cmdFD, asyncFD int, errno syscall.Errno)
	closeDevice    func(context object) syscall.Errno
	queryDevice    func(context object) (deviceAttr, syscall.Errno)
	queryPort      func(context object, port uint8) (portAttr, syscall.Errno)
	queryPortSpeed func(context object, port uint8) (hundredMbps uint64, errno syscall.Errno)
	queryGID       func(context object, port uint8, index int) ([16]byte, syscall.Errno)
	queryGIDTable  func(context object, most int) ([]gidEntry, syscall.Errno)
	queryPKey      func(context object, port uint8, index int) (uint16, syscall.Errno)

	allocPD     func(context object) (pd object, errno syscall.Errno)
	deallocPD   func(pd object) syscall.Errno
	regMR       func(pd object, addr uintptr, length uint64, access Access) (memoryKeys, syscall.Errno)
	regMRIova2  func(pd object, addr uintptr, length uint64, access Access) (memoryKeys, syscall.Errno)
	regDmabufMR func(pd object, offset, length uint64, iova uintptr, fd int, access Access) (memoryKeys, syscall.Errno)
	deregMR     func(mr object) syscall.Errno

	createCQ  func(context object, cqe int) (cq object, got int, errno syscall.Errno)
	destroyCQ func(cq object) syscall.Errno
	createQP  func(pd, sendCQ, recvCQ object, want qpCap) (qp object, number uint32, got qpCap, errno syscall.Errno)
	modifyQP  func(qp object, attr *qpAttr) syscall.Errno
	queryQP   func(qp object) (qpAttr, syscall.Errno)
	destroyQP func(qp object) syscall.Errno
	queryECE  func(qp object) (ECE, syscall.Errno)
	setECE    func(qp object, ece ECE) syscall.Errno

	// postProof posts a signaled WRITE; pollOne takes at most one completion.
	postProof func(qp object, from uintptr, lkey uint32, bytes int, addr uint64, rkey uint32) syscall.Errno
	pollOne   func(cq object) (c polled, n int, errno syscall.Errno)

	// getAsyncEvent answers EAGAIN when there is none: the descriptor does not block.
	getAsyncEvent func(context object) (asyncEvent, syscall.Errno)
	ackAsyncEvent func(event asyncEvent)

	// Of libmlx5. Supported answers 0 for a card of its own; the path is below
	// sysfs; a registration goes through the data-direct function.
	mlx5Supported  func(device object) syscall.Errno
	mlx5DirectPath func(context object) (path string, errno syscall.Errno)
	mlx5RegDirect  func(pd object, offset, length uint64, iova uintptr, fd int, access Access) (memoryKeys, syscall.Errno)

	// Queue pairs whose requests arrive in any order, and how many receives one may have.
	mlx5AnyOrder func(context object) (receives int, errno syscall.Errno)
	mlx5CreateQP func(context, pd, sendCQ, recvCQ object, want qpCap) (qp object, number uint32, got qpCap, errno syscall.Errno)

	loaded object          // struct weft_ibv
	lacks  map[string]bool // optional functions that the library does not have, by their full name
}

// deviceEntry is struct ibv_device as the list shows it.
type deviceEntry struct {
	device    object
	name      string // mlx5_0
	sysfs     string // /sys/class/infiniband/mlx5_0
	transport int32  // enum ibv_transport_type
}

const transportIB = 0 // InfiniBand and RoCE; iWARP and others connect in ways of their own

// deviceAttr is what weft uses of struct ibv_device_attr.
type deviceAttr struct {
	firmware      string
	systemGUID    uint64 // as the device gives it, in network byte order
	vendor, part  uint32
	maxQP         int
	maxQPWR       int
	maxCQ, maxCQE int
	maxMR         int
	maxMRSize     uint64
	ports         uint8
}

// portAttr is what weft uses of struct ibv_port_attr.
type portAttr struct {
	state         int32
	linkLayer     uint8
	activeMTU     uint8 // enum ibv_mtu
	gidTableLen   int
	maxMessage    uint32
	pkeyTableLen  uint16
	lid           uint16
	activeWidth   uint8
	activeSpeed   uint8
	activeSpeedEx uint32
	flags         uint8
}

const (
	portActive     = 4 // IBV_PORT_ACTIVE
	linkInfiniBand = 1
	linkEthernet   = 2
	grhRequired    = 1 // IBV_QPF_GRH_REQUIRED
)

// gidEntry is struct ibv_gid_entry.
type gidEntry struct {
	port    uint8
	gid     [16]byte
	index   int
	kind    GIDType
	ifIndex int
}

// memoryKeys is what registering gives.
type memoryKeys struct {
	mr         object
	lkey, rkey uint32
}

// qpCap is struct ibv_qp_cap with one scatter entry a request.
type qpCap struct {
	sendWR, recvWR, inline int
}

// qpAttr is what weft sets of struct ibv_qp_attr; mask says which parts count.
type qpAttr struct {
	mask      int
	state     QPState
	pkeyIndex uint16
	port      uint8
	access    Access
	mtu       uint8
	destQP    uint32
	rqPSN     uint32
	sqPSN     uint32
	maxDestRd uint8
	minRNR    uint8
	timeout   uint8
	retry     uint8
	rnrRetry  uint8
	maxRd     uint8
	path      addressHandle
}

// addressHandle is struct ibv_ah_attr.
type addressHandle struct {
	global       bool
	dgid         netip.Addr
	sgidIndex    uint8
	hopLimit     uint8
	trafficClass uint8
	dlid         uint16
	sl           uint8
	port         uint8 // of the local device
}

// polled is what weft uses of struct ibv_wc.
type polled struct {
	Completion
	of request // of a receive only if it succeeded
}

// request is what a completion is of.
type request int

const (
	ofSend request = iota
	ofProof
	ofReceive
)

// asyncEvent is struct ibv_async_event; raw is what the library wants back.
type asyncEvent struct {
	kind    EventKind
	element object
	port    int
	raw     [16]byte
}
