package rdma

import (
	"net/netip"
	"strconv"
)

// GIDType is enum ibv_gid_type.
type GIDType uint32

const (
	GIDInfiniBand GIDType = iota
	GIDRoCEv1
	GIDRoCEv2
)

func (t GIDType) String() string {
	if int(t) < 3 {
		return [...]string{"IB", "RoCE v1", "RoCE v2"}[t]
	}
	return "type " + strconv.Itoa(int(t))
}

// IBV_LINK_LAYER_*, the link layers of ports.
const (
	LinkInfiniBand = 1
	LinkEthernet   = 2
)

// GIDBytes is a GID as it travels; zeros for none.
func GIDBytes(a netip.Addr) [16]byte {
	if !a.IsValid() {
		return [16]byte{}
	}
	return a.As16()
}
