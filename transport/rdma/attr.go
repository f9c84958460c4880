package rdma

// CommAttr is what NCCL expects of one direction of a context's connections
// (ncclNetCommAttr), -1 where it does not say. Hints only: nothing fails because
// one is wrong.
type CommAttr struct {
	MaxConcurrentPeers, MinConcurrentPeers int32
	MaxFlowsPerPeer, MinFlowsPerPeer       int32
}

// Attr is what NCCL tells about the work that comes next (ncclNetAttr,
// tables v11 and later). Op, Algo and Proto are sets, all ones where it does not say.
type Attr struct {
	Send, Recv      CommAttr
	Op, Algo, Proto uint32
}

// NCCL's operations, algorithms and protocols, as bits of Attr's sets.
const (
	OpBroadcast = 1 << 0 // around a ring, always
	OpReduce    = 1 << 1 // so too

	AlgoTree = 1 << 0
	AlgoRing = 1 << 1

	ProtoLL     = 1 << 0
	ProtoLL128  = 1 << 1
	ProtoSimple = 1 << 2
)

// Busy is how many connections of one direction are used at a time; 0: nobody says.
func (a Attr) Busy(of CommAttr) int {
	peers := int(of.MaxConcurrentPeers)
	switch {
	case peers > 0:
	case only(a.Algo, AlgoRing), only(a.Op, OpBroadcast|OpReduce):
		peers = 1 // a rank sends to one neighbour and receives from the other
	case only(a.Algo, AlgoTree):
		peers = 3 // one above it and two below
	default:
		return 0
	}
	return peers * max(0, int(of.MaxFlowsPerPeer))
}

// Small reports that only the protocols of small messages are used.
func (a Attr) Small() bool { return only(a.Proto, ProtoLL|ProtoLL128) }

// only reports a set that is not empty and has nothing but these.
func only(set, these uint32) bool { return set != 0 && set&^these == 0 }
