package knob

// ID names one knob; it is the index into the table.
type ID int

const (
	SocketIfname ID = iota
	SocketFamily
	CommID
	SocketNThreads
	NSocksPerThread
	SocketInline
	SocketMinTaskSize
	SocketRetryCnt
	SocketRetrySleep
	SocketPollTimeout
	SocketRcvBuf
	SocketSndBuf
	SocketMagic
	SocketTOS
	IBDisable
	IBHCA
	IBVerbsLib
	IBGIDIndex
	IBRoutableFLID
	IBRoceVersion
	IBAddrFamily
	IBAddrRange
	IBSubnetPrefixLen
	IBTimeout
	IBRetryCnt
	IBPkey
	IBSL
	IBTC
	IBFifoTC
	IBECE
	IBRelaxedOrdering
	IBMergeVFs
	IBPCIOrder
	IBQueryPortSpeed
	IBAsyncEvents
	IBModifyRetryAll
	IBModifyRetryCnt
	IBModifyRetrySleep
	IBQPsPerConnection
	Flush
	Timeout
	ConnectTimeout
	AcceptTimeout
	PortRange

	count
)

// Type is how a knob's text is read.
type Type uint8

const (
	Number  Type = iota // strtoll base 0: 16, 0x10, 020
	Bits                // strtoull base 0: any 64-bit pattern
	Text                // taken as it is
	Choice              // one of Spec.Choices
	Ports               // LOW-HIGH or one port
	Seconds             // a Number of seconds
)

func (t Type) String() string {
	return [...]string{"number", "bits", "text", "choice", "ports", "seconds"}[t]
}

// Spec is one row of the table.
type Spec struct {
	Name    string
	Type    Type
	Default int64
	Min     int64
	Max     int64
	Special []int64 // legal besides Min..Max
	Choices []string
	Inert   string // why it changes nothing here; "" when it has an effect
	Doc     string // Markdown, for docs/knobs.md
}

var table = [count]Spec{
	SocketIfname: {Name: "NCCL_SOCKET_IFNAME", Type: Text,
		Doc: "Which interfaces to use: `[^][=]name[,name...]`. `^` excludes what the list matches, `=` compares whole names instead of prefixes; both come first, in this order, and hold for the whole list. At most 16 entries; a `:port` after a name is read over. Shorter than two characters counts as unset. Unset: interfaces whose name begins with `ib`; else the one in the subnet of `NCCL_COMM_ID`; else all but `docker`, `lo`, `virbr`; else `docker`; else `lo`; else `virbr`. A list that matches nothing stops init."},
	SocketFamily: {Name: "NCCL_SOCKET_FAMILY", Type: Choice, Choices: []string{"AF_INET", "AF_INET6"},
		Doc: "Use only addresses of this family. Unset: each interface is advertised with its addresses in the kernel's order, IPv4 first."},
	CommID: {Name: "NCCL_COMM_ID", Type: Text,
		Doc: "`address:port`, `[IPv6]:port` or `host:port` of rank 0. weft only asks which interface shares its subnet, when `NCCL_SOCKET_IFNAME` is unset and no interface begins with `ib`."},
	SocketNThreads: {Name: "NCCL_SOCKET_NTHREADS", Type: Number, Default: -2, Min: 0, Max: 16, Special: []int64{-2},
		Doc: "The number of TCP streams of a connection is `NCCL_SOCKET_NTHREADS` x `NCCL_NSOCKS_PERTHREAD`, at least 1 and at most 64. No threads are started: the thread that calls isend, irecv and test moves the bytes of all streams, and a chunk goes to whichever stream can take it. The listener's count holds for both sides. -2: 2 on AWS (vendor 0x1d0f), 4 on Google Cloud (0x1ae0), else 0, which means one stream."},
	NSocksPerThread: {Name: "NCCL_NSOCKS_PERTHREAD", Type: Number, Default: -2, Min: 1, Max: 64, Special: []int64{-2},
		Doc: "The other factor of the number of streams. -2: 8 on AWS, else 1. A product above 64 is cut to what 64 allows, with a warning."},
	SocketInline: {Name: "NCCL_SOCKET_INLINE", Type: Number, Default: 128, Min: 0, Max: 1<<31 - 1,
		Inert: "payloads up to 1 KiB always travel in one frame with their header",
		Doc:   "Accepted. Unlike NCCL's own sockets, both sides need not agree on it."},
	SocketMinTaskSize: {Name: "NCCL_SOCKET_MIN_TASKSIZE", Type: Number, Default: 65536, Min: 1, Max: 1<<31 - 1,
		Inert: "streams take chunks of 128 KiB as they become writable",
		Doc:   "Accepted. Unlike NCCL's own sockets, both sides need not agree on it."},
	SocketRetryCnt: {Name: "NCCL_SOCKET_RETRY_CNT", Type: Number, Default: 34, Min: 0, Max: 1 << 20,
		Doc: "How often a connect that was refused, unreachable or timed out on every address is tried again, within `WEFT_CONNECT_TIMEOUT`. The caller never sleeps: connect answers \"not yet\" while a goroutine waits."},
	SocketRetrySleep: {Name: "NCCL_SOCKET_RETRY_SLEEP_MSEC", Type: Number, Default: 100, Min: 0, Max: 600_000,
		Doc: "Milliseconds before the first retry; the n-th waits n times as long."},
	SocketPollTimeout: {Name: "NCCL_SOCKET_POLL_TIMEOUT_MSEC", Type: Number, Default: 0, Min: 0, Max: 1<<31 - 1,
		Inert: "no call waits on a socket",
		Doc:   "Accepted."},
	SocketRcvBuf: {Name: "NCCL_SOCKET_RCVBUF", Type: Number, Default: -1, Min: 0, Max: 1<<31 - 1, Special: []int64{-1},
		Doc: "SO_RCVBUF of data sockets in bytes; -1 leaves the kernel's autotuning on, which is nearly always better."},
	SocketSndBuf: {Name: "NCCL_SOCKET_SNDBUF", Type: Number, Default: -1, Min: 0, Max: 1<<31 - 1, Special: []int64{-1},
		Doc: "SO_SNDBUF of data sockets in bytes; -1 leaves the kernel's autotuning on."},
	SocketMagic: {Name: "NCCL_SOCKET_MAGIC", Type: Bits, Default: 0x564ab9f2fc4b9d6c,
		Inert: "every listen draws a secret token of its own, and a peer proves that it knows it",
		Doc:   "Accepted."},
	SocketTOS: {Name: "NCCL_SOCKET_TOS_CONFIG", Type: Number, Default: -1, Min: 0, Max: 255, Special: []int64{-1},
		Doc: "IP_TOS or IPV6_TCLASS of data and control sockets: the whole byte, that is DSCP x 4. -1: the context's or connection's traffic class if NCCL was given one, else the kernel's default."},
	IBDisable: {Name: "NCCL_IB_DISABLE", Type: Number, Default: 0, Min: 0, Max: 1<<31 - 1,
		Doc: "Anything but 0: no RDMA device is looked for, and connections use TCP."},
	IBHCA: {Name: "NCCL_IB_HCA", Type: Text,
		Doc: "Which RDMA devices and ports to use: `[^][=]name[:port[:rail[:plane]]][,...]`. `^` excludes what the list matches, `=` compares whole names instead of prefixes (`mlx5_1` also means `mlx5_10`); both come first, in this order, and hold for the whole list. At most 32 entries; an empty port, rail or plane means any. The first entry that matches gives the device its rail and plane; with `^` there are none. Unset: every active port."},
	IBVerbsLib: {Name: "NCCL_IBVERBS_LIB", Type: Text,
		Doc: "The libibverbs to open, tried before `libibverbs.so.1` and `libibverbs.so`. Without any of them connections use TCP."},
	IBGIDIndex: {Name: "NCCL_IB_GID_INDEX", Type: Text,
		Doc: "Which entry of the GID table a RoCE port uses. Also a list per device: `name[:port]=index,...`, in which a bare number holds for the devices that are not named. An entry that does not exist or cannot work is a warning, and the port is not used. Unset or -1: chosen by `NCCL_IB_ADDR_FAMILY`, `NCCL_IB_ADDR_RANGE` and `NCCL_IB_ROCE_VERSION_NUM` among the entries whose network device is up. InfiniBand ports do not look at it, as in NCCL."},
	IBRoutableFLID: {Name: "NCCL_IB_ROUTABLE_FLID_GID_INDEX", Type: Number, Default: 1, Min: 0, Max: 255,
		Doc: "InfiniBand: the GID at this index is used when it has a FLID, which routes between subnets; else the one at 0."},
	IBRoceVersion: {Name: "NCCL_IB_ROCE_VERSION_NUM", Type: Number, Default: 2, Min: 1, Max: 2,
		Doc: "The version of RoCE that the choice of a GID prefers."},
	IBAddrFamily: {Name: "NCCL_IB_ADDR_FAMILY", Type: Choice, Choices: []string{"AF_INET", "AF_INET6"},
		Doc: "The address family that the choice of a GID prefers. Unset: AF_INET."},
	IBAddrRange: {Name: "NCCL_IB_ADDR_RANGE", Type: Text,
		Doc: "`address/length`: the choice of a GID prefers addresses in this range. A range that cannot be read is a warning and ignored."},
	IBSubnetPrefixLen: {Name: "NCCL_IB_SUBNET_PREFIX_LEN", Type: Number, Default: 24, Min: 1, Max: 32,
		Doc: "Length of the subnet of an IPv4 GID whose network device is not visible here. Where it is visible, its own netmask counts. IPv6: always 64."},
	IBTimeout: {Name: "NCCL_IB_TIMEOUT", Type: Number, Default: 20, Min: 0, Max: 31,
		Doc: "A queue pair waits 4.096 us x 2^n for an acknowledgement before it sends again; 0 waits for ever. 20 is 4.3 s."},
	IBRetryCnt: {Name: "NCCL_IB_RETRY_CNT", Type: Number, Default: 7, Min: 0, Max: 7,
		Doc: "How often it sends again before the connection counts as broken. (Soft-RoCE takes 7 for \"always\"; weft's own check of a silent connection ends it all the same.)"},
	IBPkey: {Name: "NCCL_IB_PKEY", Type: Number, Default: 0, Min: 0, Max: 65535,
		Doc: "Index into the port's table of partition keys."},
	IBSL: {Name: "NCCL_IB_SL", Type: Number, Default: -1, Min: 0, Max: 15, Special: []int64{-1},
		Doc: "Service level of the connections that this side sends on. -1: 0. (NCCL would take the communicator's traffic class, which belongs to another field.)"},
	IBTC: {Name: "NCCL_IB_TC", Type: Number, Default: -1, Min: 0, Max: 255, Special: []int64{-1},
		Doc: "Traffic class of the connections that this side sends on: the whole byte, that is DSCP x 4. -1: the traffic class that NCCL gives with the communicator, else 0."},
	IBFifoTC: {Name: "NCCL_IB_FIFO_TC", Type: Number, Default: -1, Min: 0, Max: 255, Special: []int64{-1},
		Doc: "Traffic class of what a receiver sends: clear-to-send messages and, with them, acknowledgements. -1: the sender's."},
	IBECE: {Name: "NCCL_IB_ECE_ENABLE", Type: Number, Default: 1, Min: 0, Max: 1,
		Doc: "Whether the ends of a connection agree on the vendor's enhancements (ECE) where library and device know them."},
	IBRelaxedOrdering: {Name: "NCCL_IB_PCI_RELAXED_ORDERING", Type: Number, Default: 2, Min: 0, Max: 2,
		Doc: "1 or 2: data may reach memory out of order on the PCI bus where libibverbs offers that (ibv_reg_mr_iova2). 0: never."},
	IBMergeVFs: {Name: "NCCL_IB_MERGE_VFS", Type: Number, Default: 1, Min: 0, Max: 1,
		Doc: "Whether the virtual functions of one card are reported with one PCI path, so that NCCL knows they share it."},
	IBPCIOrder: {Name: "NCCL_IB_DEVICE_PCI_ORDER", Type: Number, Default: 1, Min: 0, Max: 1,
		Doc: "Whether devices are listed in the order of their PCI addresses, those without one last; else in the library's order."},
	IBQueryPortSpeed: {Name: "NCCL_IB_QUERY_PORT_SPEED", Type: Number, Default: 1, Min: 0, Max: 1,
		Doc: "Whether a port's speed is asked of ibv_query_port_speed where that exists; else it is link width times lane speed."},
	IBAsyncEvents: {Name: "NCCL_IB_RETURN_ASYNC_EVENTS", Type: Number, Default: 1, Min: 0, Max: 1,
		Doc: "Whether a fatal event of a device ends the connections on it at once. 0: it is only logged."},
	IBModifyRetryAll: {Name: "NCCL_IB_MQP_RETRY_ALL", Type: Number, Default: 0, Min: 0, Max: 1,
		Doc: "Which failures of ibv_modify_qp are tried again: 0 only ETIMEDOUT, 1 all."},
	IBModifyRetryCnt: {Name: "NCCL_IB_MQP_RETRY_CNT", Type: Number, Default: 34, Min: 0, Max: 1 << 20,
		Doc: "How often, within `WEFT_CONNECT_TIMEOUT`. The caller never sleeps: connect answers \"not yet\" while a goroutine waits."},
	IBModifyRetrySleep: {Name: "NCCL_IB_MQP_RETRY_SLEEP_MSEC", Type: Number, Default: 100, Min: 0, Max: 600_000,
		Doc: "Milliseconds before the first retry; the n-th waits n times as long."},
	IBQPsPerConnection: {Name: "NCCL_IB_QPS_PER_CONNECTION", Type: Number, Default: 1, Min: 1, Max: 128,
		Doc: "Queue pairs of a connection that RDMA carries, as the connecting side has it; more than 32 are a warning, and 32 are used."},
	Flush: {Name: "WEFT_FLUSH", Type: Choice, Choices: []string{"auto", "always", "never"},
		Doc: "Whether iflush reads back what an RDMA receive brought, so that the GPU sees it. `auto` and unset: for GPU memory; `always`: for host memory too; `never`: the platform orders writes to GPU memory by itself."},
	Timeout: {Name: "WEFT_TIMEOUT", Type: Seconds, Default: 10, Min: 1, Max: 3600,
		Doc: "How long a peer may be silent on the control connection, and a close may drain, before it counts as gone. A stopped process is not gone: its kernel still answers."},
	ConnectTimeout: {Name: "WEFT_CONNECT_TIMEOUT", Type: Seconds, Default: 60, Min: 1, Max: 86400,
		Doc: "How long a connect may stay unanswered before it fails. In tables v2-v4, whose connect blocks, the call takes at most this long."},
	AcceptTimeout: {Name: "WEFT_ACCEPT_TIMEOUT", Type: Seconds, Default: 600, Min: 1, Max: 86400,
		Doc: "How long the blocking accept of tables v2-v4 waits. From v5 on accept never waits and has no limit."},
	PortRange: {Name: "WEFT_PORT_RANGE", Type: Ports,
		Doc: "`LOW-HIGH`: ports that the process may listen on, for firewalls. One port per address and process is used. Unset: the kernel chooses."},
}

// Lookup returns the row of id.
func Lookup(id ID) Spec { return table[id] }

// All returns the rows in the table's order.
func All() []Spec { return append([]Spec(nil), table[:]...) }
