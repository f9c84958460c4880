package transport

import (
	"fmt"
	"net/netip"
	"slices"

	"weft/transport/rdma"
	"weft/transport/tcp"
	"weft/transport/wire"
)

// path is one way to reach a peer: from a local address, bound to a device or not.
type path struct {
	remote netip.AddrPort
	local  netip.Addr  // zero: the kernel chooses
	dev    *tcp.Device // nil: not bound
}

// String describes a path for messages.
func (p path) String() string {
	if p.local == (netip.Addr{}) {
		return p.remote.String()
	}
	return fmt.Sprintf("%s from %s", p.remote, p.local)
}

// substitute says where traffic leaves when not by the device asked for.
func (p path) substitute(dev *tcp.Device, c *conn) string {
	if p.dev != nil {
		return ""
	}
	return fmt.Sprintf(" (no path from %s itself: leaving from %s)", dev.Name, c.LocalAddr())
}

// paths lists the ways to the handle's addresses: first from the device that
// NCCL asked for, its own subnets before others, then from wherever the
// kernel's routes lead.
func paths(dev *tcp.Device, h *wire.Handle) []path {
	var out []path
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
			out = append(out, path{remote: remote, local: local, dev: dev})
		}
	}
	for _, e := range eps {
		if !e.Addr.IsLinkLocalUnicast() {
			out = append(out, path{remote: e.AddrPort()})
		}
	}
	return out
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
