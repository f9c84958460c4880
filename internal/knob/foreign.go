package knob

import (
	"slices"
	"strings"
)

// unkept are promises of NCCL's variables that weft does not keep. Who set one
// hears so, and nobody its value.
var unkept = []struct{ name, why string }{
	{"NCCL_PSK", "is set for encrypted connections, and weft's are not: they prove a secret that NCCL's handle brings, and carry data as it is; " +
		"unset it, or encrypt the network below (IPsec, MACsec)"},
}

// Secret reports a variable whose value nobody is shown.
func Secret(name string) bool {
	return slices.ContainsFunc(unkept, func(u struct{ name, why string }) bool { return u.name == name })
}

// Foreign says who reads a variable of the network that weft does not read, and what its default and meaning are, in Markdown.
func Foreign(name string) (reader, meaning string, known bool) {
	for _, group := range foreigns {
		for _, f := range group.names {
			for one := range strings.SplitSeq(f.name, ", ") {
				if prefix, many := strings.CutSuffix(one, "*"); one == name || many && strings.HasPrefix(name, prefix) {
					return group.reader, f.meaning, true
				}
			}
		}
	}
	return "", "", false
}

// foreign is a variable that concerns the network and that weft does not read.
type foreign struct{ name, meaning, ours string }

// foreigns are by who reads them.
var foreigns = []struct {
	reader, intro string
	names         []foreign
}{
	{"Read by NCCL's core", "They decide what NCCL asks of a network, weft or another; weft must not read them a second time.", []foreign{
		{"NCCL_NET", "unset: which network to take, by its name", "the name is `weft`"},
		{"NCCL_NET_PLUGIN", "unset: which libraries to look in", "`weft`, or the path of the library"},
		{"NCCL_NET_PLUGIN_REF_COUNT", "0; 1: the library is never unloaded", "a Go library is never unloaded anyhow, and its state outlives dlclose"},
		{"NCCL_DEBUG, NCCL_DEBUG_LEVELS, NCCL_DEBUG_SUBSYS, NCCL_DEBUG_FILE", "what is logged (the second from 2.32 on: levels besides), and where", "weft's lines go through NCCL's log; it looks at the first two, and at `NCCL_WARN_ENABLE_DEBUG_INFO`, only to know whether INFO and TRACE lines are worth their text. With `NCCL_ENV_PLUGIN` set (but to none) INFO lines are; a `libnccl-env.so` that NCCL finds without it does not count. None of its lines is an ATTN"},
		{"NCCL_PSK", "unset; a key (from 2.32 on): NCCL's own TCP connections are encrypted", "none: connections prove a secret that NCCL's handle brings, but what they carry is not encrypted. A WARN says so; it does not show the key"},
		{"NCCL_CONF_FILE", "`~/.nccl.conf`, `/etc/nccl.conf`: further settings", "they count for weft too: NCCL puts them into the environment"},
		{"NCCL_ENV_PLUGIN", "unset; `libnccl-env.so` is tried (from 2.28 on): a library that gives variables their values", "what it gives does not reach weft, which reads the environment of the process: what concerns the network has to be set there"},
		{"NCCL_NET_GDR_LEVEL, NCCL_NET_GDR_READ, NCCL_NET_GDR_C2C", "unset, -2, 1: how near GPU and NIC must be for GPU memory to be registered", "`ptrSupport` says truthfully what a device can register"},
		{"NCCL_DMABUF_ENABLE", "1: GPU memory is registered as a DMA-BUF where the device takes that", "regMrDmaBuf"},
		{"NCCL_NET_FORCE_FLUSH", "0; 1: iflush after every receive into GPU memory", "iflush; `WEFT_FLUSH` says what it does"},
		{"NCCL_NET_SHARED_BUFFERS, NCCL_NET_SHARED_COMMS", "-2, 1: whether channels share buffers and connections", "a connection takes as many requests as NCCL shares it among"},
		{"NCCL_NET_OPTIONAL_RECV_COMPLETION", "1: LL and LL128 do without the completion of a receive", "irecv returns a request all the same"},
		{"NCCL_CROSS_NIC, NCCL_PXN_DISABLE, NCCL_NETDEVS_POLICY, NCCL_NET_DISABLE_INTRA", "2, 0, unset, 0: which NIC a channel uses", "the device that is asked for is tried first; a port that shares the peer's subnet comes before one that does not"},
		{"NCCL_NET_MERGE_LEVEL, NCCL_NET_FORCE_MERGE, NCCL_NET_MERGE_POLICY", "PORT, unset, ALL: which devices NCCL fuses", "makeVDevice; `NCCL_IB_MERGE_NICS`"},
		{"NCCL_LL128_BUFFSIZE", "4915200: how large a buffer of LL128 is", "over TCP a receive of LL128 is known by it, and written in the order of its addresses; with another size a line's flag may be seen before the line, as over NCCL's own sockets"},
		{"NCCL_BUFFSIZE, NCCL_P2P_NET_CHUNKSIZE", "4 MiB, 128 KiB: how much one isend carries", "any size up to 1 GiB"},
		{"NCCL_OOB_NET_ENABLE, NCCL_OOB_NET_IFNAME", "0, unset: the bootstrap runs over a network too", "connections of it are like any other"},
		{"NCCL_IGNORE_CPU_AFFINITY, NCCL_SET_THREAD_NAME", "0, 0: NCCL's threads", "weft moves data on the thread that calls it; Go's own threads inherit the affinity of the thread that loads the library"},
	}},
	{"Read by RCCL", "They are of its own networks (net_ib_cast) or its core; without them RCCL asks of weft what NCCL asks.", []foreign{
		{"RCCL_IB_QP_SCHED_ENABLE, RCCL_IB_QP_SCHED_*", "how messages are shared among QPs: small ones in turn, by weights that follow round-trip times, large ones over all", "`NCCL_IB_QPS_PER_CONNECTION`; shares follow what each QP carries"},
		{"RCCL_IB_QP_SHARING_ENABLE, RCCL_IB_COMM_NGROUPS, RCCL_IB_QP_DEPTH_MULTIPLIER", "0, 4, 8: whether connections to one peer share QPs, in how many groups, and how deep those are", "none: each has its own, and those of closed connections serve again"},
		{"RCCL_GDR_FLUSH_GPU_MEM_NO_RELAXED_ORDERING", "1: a flush writes and reads GPU memory of its own", "`WEFT_FLUSH`; a flush reads what was received"},
		{"RCCL_FORCE_ENABLE_GDRDMA", "unset; 1: GPU memory counts as reachable", "none: the kernel's clients of peer memory and DMA-BUF are looked for"},
		{"RCCL_MULTIPLANE_MAP_FILE", "unset: which addresses of planes stand behind a port's own", "none: each port is used by its own addresses"},
	}},
	{"Read by NCCLX", "Meta's NCCL reads them in its core; the network plugin sees what follows from them.", []foreign{
		{"NCCL_USE_TRANSPORT_EXT", "false: connections are made when they are first needed, and their buffers are pooled", "connect and accept at any time, also long after init and again to the same peer"},
		{"NCCL_USE_MEM_CACHE", "false: buffers of closed connections are used again", "a registration lives until its last user is gone, and a range inside a registered one costs nothing"},
		{"NCCL_CHANNEL_METADATA_LOCATION", "unset (device; host with the cache): where NCCL keeps its channels' data", "none: no network sees that memory"},
		{"NCCL_CTRAN_IB_MAX_QPS, NCCL_CTRAN_IB_QP_SCALING_THRESHOLD, NCCL_CTRAN_IB_VC_MODE, NCCL_CTRAN_IB_*", "of CTRAN, which talks to NICs itself", "`NCCL_IB_QPS_PER_CONNECTION`, `WEFT_STRIPE_MIN`; CTRAN does not use a network plugin"},
	}},
	{"Not used: GIN and RMA", "They belong to NCCL's device-initiated networking, which weft does not offer: it exports no such table, and NCCL looks for one elsewhere.", []foreign{
		{"NCCL_GIN_ENABLE, NCCL_GIN_TYPE, NCCL_GIN_NCONNECTIONS", "1, -1, -2: whether, which, how many connections", "none"},
		{"NCCL_GIN_IB_TC", "-1: the traffic class of GIN", "`NCCL_IB_TC` for everything that weft sends"},
		{"NCCL_GIN_ERROR_QUERY_SEC, NCCL_GIN_PROXY_QUEUE_SIZE, NCCL_GIN_PROXY_NTHREADS, NCCL_GIN_PROXY_POLL_BATCH, NCCL_GIN_IB_OOO_OPT", "10, -1, 1, 32, 0", "none"},
		{"NCCL_GIN_GDAKI_NIC_HANDLER, NCCL_GIN_GDAKI_QP_DEPTH, NCCL_GIN_GDAKI_MAX_DEST_RD_ATOMIC, NCCL_GIN_GDAKI_MAX_QP_RD_ATOMIC, NCCL_GDAKI_USE_RELIABLE_DB", "0, 128, -2, -2, 0", "none"},
		{"NCCL_RMA_PROXY_QUEUE_SIZE, NCCL_RMA_PROXY_DUMP_SIGNAL", "-1, -1", "none"},
	}},
}
