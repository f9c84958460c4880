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
