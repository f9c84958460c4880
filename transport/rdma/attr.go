package rdma

// CommAttr is what NCCL expects of one direction of a context's connections
// (ncclNetCommAttr). Hints only: nothing fails because one is wrong.
type CommAttr struct {
	MaxConcurrentPeers, MinConcurrentPeers int32
	MaxFlowsPerPeer, MinFlowsPerPeer       int32
}

// Attr is what NCCL tells about the work that comes next (ncclNetAttr,
// tables v11 and later).
type Attr struct {
	Send, Recv      CommAttr
	Op, Algo, Proto uint32
}

// Alone reports one connection at a time: no other keeps the ports busy.
func (c CommAttr) Alone() bool { return c.MaxConcurrentPeers == 1 && c.MaxFlowsPerPeer == 1 }

// NCCL's protocols, as bits of Attr.Proto.
const (
	ProtoLL = 1 << iota
	ProtoLL128
	ProtoSimple
)

// Small reports that only the protocols of small messages are used.
func (a Attr) Small() bool { return a.Proto != 0 && a.Proto&^(ProtoLL|ProtoLL128) == 0 }
