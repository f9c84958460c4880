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
