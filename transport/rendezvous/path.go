package rendezvous

import (
	"fmt"
	"net/netip"
	"slices"

	"weft/transport/rdma"
	"weft/transport/tcp"
	"weft/transport/wire"
)

// Path leads to a peer: from a local address, bound to a device or not.
type Path struct {
	Remote netip.AddrPort
	local  netip.Addr  // zero: the kernel chooses
	dev    *tcp.Device // nil: not bound
}

// String describes a path for messages.
func (p Path) String() string {
	if p.local == (netip.Addr{}) {
		return p.Remote.String()
	}
	return fmt.Sprintf("%s from %s", p.Remote, p.local)
}

// Substitute says where traffic leaves when not by the device asked for.
func (p Path) Substitute(dev *tcp.Device, c *Conn) string {
	if p.dev != nil {
		return ""
	}
	return fmt.Sprintf(" (no path from %s itself: leaving from %s)", dev.Name, c.LocalAddr())
}

// pathsFrom lists the paths to the handle's addresses: first from the device that
// NCCL asked for, its own subnets before others, then from wherever the
// kernel's routes lead.
func pathsFrom(dev *tcp.Device, h *wire.Handle) []Path {
	var out []Path
	eps := slices.Clone(h.Addrs)
	slices.SortStableFunc(eps, func(a, b wire.Endpoint) int {
		near := func(e wire.Endpoint) int {
			if dev.Reaches(e.Addr) {
				return 0
			}
			return 1
		}
		return near(a) - near(b)
	})
	for _, e := range eps {
		remote := netip.AddrPortFrom(rdma.Scoped(e.Addr, dev.IfIndex), e.Port)
		if local, ok := sourceFor(dev, e.Addr); ok {
			out = append(out, Path{Remote: remote, local: local, dev: dev})
		}
	}
	for _, e := range eps {
		if !e.Addr.IsLinkLocalUnicast() {
			out = append(out, Path{Remote: e.AddrPort()})
		}
	}
	return out
}

// Paths lists the paths from the interfaces of a device: first from each of these.
func Paths(devs []*tcp.Device, h *wire.Handle) (paths []Path) {
	var routed []Path
	for _, i := range devs {
		for _, p := range pathsFrom(i, h) {
			switch {
			case p.dev != nil:
				paths = append(paths, p)
			case !slices.Contains(routed, p):
				routed = append(routed, p)
			}
		}
	}
	return append(paths, routed...)
}

// StreamPath is the path of stream i of a comm: the streams take the device's
// interfaces in turn, and each one's neighbours among the listener's addresses.
// An interface without neighbours leaves it to the path that is known to work.
func StreamPath(all []*tcp.Device, h *wire.Handle, i int, known Path) Path {
	from := all[i%len(all)]
	var near []Path
	for _, p := range pathsFrom(from, h) {
		if p.dev != nil && from.Reaches(p.Remote.Addr()) {
			near = append(near, p)
		}
	}
	if len(near) == 0 || len(all) == 1 && len(near) == 1 {
		return known
	}
	return near[i%len(near)]
}

// sourceFor picks the device's address to reach remote from: the one in its
// subnet, else the first of its family and scope.
func sourceFor(dev *tcp.Device, remote netip.Addr) (netip.Addr, bool) {
	best := -1
	for i, p := range dev.Addrs {
		a := p.Addr()
		if a.Is4() != remote.Is4() || (a.Is6() && a.IsLinkLocalUnicast() != remote.IsLinkLocalUnicast()) {
			continue
		}
		if p.Contains(remote) {
			best = i
			break
		}
		if best < 0 {
			best = i
		}
	}
	if best < 0 {
		return netip.Addr{}, false
	}
	return dev.Addr(best), true
}
