package port

import (
	"weft/transport/verbs/gid"
	"weft/transport/verbs/ibv"
)

// RouteTo reports whether this machine has a route to a remote GID's address that
// leaves by the network device behind the local one. Unknown is true: a device
// that is not visible here, or a kernel that does not say, is no reason to leave
// a path untried.
func (d *Device) RouteTo(from, to gid.GID) bool {
	if from.Type != ibv.GIDRoCEv2 || from.NetDev == "" {
		return true
	}
	found, err := d.card.Lib.Host.Route(from.NetDev, from.Addr.Unmap(), to.Addr.Unmap())
	return found || err != nil
}
