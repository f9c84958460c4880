package ibv

import "strconv"

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
