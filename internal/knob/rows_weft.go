package knob

// ownRows are weft's own names.
var ownRows = map[ID]Spec{
	Congestion: {Name: "WEFT_CONGESTION", Type: Text,
		Doc: "The congestion control (TCP_CONGESTION) of data streams; each side chooses for what it sends, and the line of a connection names it. `auto` and unset: `reno` towards an address of this machine, where BBR may lose up to half of the speed, and what the administrator chose towards others (`net.ipv4.tcp_congestion_control`, or `congctl` of a route). `system`: that for all. Another text is the name of one, for all streams; one that the kernel does not have, or that the process may not choose, is a warning, and the system's is used. It is set on the open connection: `dctcp`, which wants ECN from the first packet on, is to be chosen by sysctl or route. Control connections keep the system's."},
	Flush: {Name: "WEFT_FLUSH", Type: Choice, Choices: []string{"auto", "always", "never"},
		Doc: "Whether iflush reads back what an RDMA receive brought, so that the GPU sees it. `auto` and unset: for GPU memory, unless `NCCL_GDR_FLUSH_DISABLE` is set; `always`: for host memory too; `never`: the platform orders writes to GPU memory by itself."},
	StripeMin: {Name: "WEFT_STRIPE_MIN", Type: Number, Default: 65536, Min: 0, Max: 1 << 30,
		Doc: "A group of at most so many bytes travels on one queue pair, whatever `NCCL_IB_SPLIT_DATA_ON_QPS` says: on several it costs more than it gains. 0: every group is split, as net_ib does. Unset, and NCCL says that only LL and LL128 come (setNetAttr): no group is split."},
	Striping: {Name: "WEFT_STRIPING", Type: Choice, Choices: []string{"even", "speed", "measured"},
		Doc: "The shares that the queue pairs get of a message that several of them carry, always multiples of 128 bytes, and how many of the messages that are too small for that: `even`; by the `speed` that both ends' ports promise; `measured` and unset: so at first, then as each has been seen to complete, looked at every fortieth of `WEFT_TIMEOUT`, so that a slow or degraded port does not set the pace. Over TCP it has no meaning: a stream takes the next piece of a message when it has sent most of what it took before, so that its part follows its speed at once."},
	Lazy: {Name: "WEFT_LAZY", Type: Choice, Choices: []string{"off", "background", "demand"},
		Doc: "When an RDMA connection gets more than its first queue pair: those on the other ports of fused devices, for which memory is registered there too, and those that `NCCL_IB_QPS_PER_CONNECTION` asks for. `off`: before connect ends; `background` and unset: soon after, while no other connect is under way; `demand`: once more than `WEFT_STRIPE_MIN` bytes have passed on it. A pair of ports that cannot be used is said and done without. The connecting side's setting holds; the receiving side's own one for the queue pairs of flushes, which with `demand` come with the first iflush."},
	Pool: {Name: "WEFT_POOL", Type: Number, Default: 256, Min: 0, Max: 16384,
		Doc: "How many RDMA connections that both sides have closed a process keeps the queue pairs of, for 30 s, so that the next connection between the same ports need not make new ones; the oldest go first, and all go with the process's last RDMA connection. Both sides keep theirs: where one has none, new ones are made. 0: none are kept."},
	Timeout: {Name: "WEFT_TIMEOUT", Type: Seconds, Default: 10, Min: 1, Max: 3600,
		Doc: "How long a peer may be silent on the control connection, and a close may drain, before it counts as gone. A stopped process is not gone: its kernel still answers. An RDMA transfer that stands still for a fifth of it has its path asked (a write of 0 bytes, which the peer's card acknowledges); no answer within a tenth of it ends the connection."},
	ConnectTimeout: {Name: "WEFT_CONNECT_TIMEOUT", Type: Seconds, Default: 60, Min: 1, Max: 86400,
		Doc: "How long a connect may stay unanswered before it fails. In tables v2-v4, whose connect blocks, the call takes at most this long."},
	AcceptTimeout: {Name: "WEFT_ACCEPT_TIMEOUT", Type: Seconds, Default: 600, Min: 1, Max: 86400,
		Doc: "How long the blocking accept of tables v2-v4 waits. From v5 on accept never waits and has no limit."},
	PortRange: {Name: "WEFT_PORT_RANGE", Type: Ports,
		Doc: "`LOW-HIGH`: ports that the process may listen on, for firewalls. One port per address and process is used. Unset: the kernel chooses."},
	Require: {Name: "WEFT_REQUIRE", Type: Choice, Choices: []string{"rdma"},
		Doc: "`rdma`: no connection goes over TCP. A listen, connect or accept that RDMA cannot carry is an error that says why, on both sides. Unset: it goes over TCP, and the first one of an RDMA device is a warning."},
	LogLevels: {Name: "WEFT_LOG_LEVELS", Type: Choice, Choices: []string{"nccl", "ncclx", "rccl"},
		Doc: "How the host numbers the levels of its log: `nccl`, as NCCL does and RCCL did up to ROCm 7.1, or `ncclx` and `rccl`, which have ERROR before WARN, so that NCCL's number for INFO is a warning there. Unset: known by what the module of NCCL's log function exports, `ncclCommGetUniqueHash` of NCCLX, `ncclAllToAllv` and `ncclCommDump` of RCCL from 2.28.3 on; for RCCL 2.27.7 by the name of its file (`librccl.so.1.0.70200` is of ROCm 7.2); else `nccl`. To be set where NCCLX is linked into a program that does not export it, and where RCCL 2.27.7 of ROCm 7.2 has a shorter name, as beside PyTorch."},
}
