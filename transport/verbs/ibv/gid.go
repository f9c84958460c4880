package ibv

import "weft/transport/rdma"

// GIDType is rdma's: who chooses among GIDs needs no libibverbs.
type GIDType = rdma.GIDType

const (
	GIDInfiniBand = rdma.GIDInfiniBand
	GIDRoCEv1     = rdma.GIDRoCEv1
	GIDRoCEv2     = rdma.GIDRoCEv2
)
