package tcp

import (
	"context"
	"net"
	"net/netip"

	"weft/internal/report"
	"weft/transport/tcp/ifname"
)

// Host is what discovery looks at. Tests describe other machines with it.
type Host struct {
	ifname.Host
	Sysfs string // "/sys"
}

// ThisHost asks the kernel.
func ThisHost() (*Host, error) {
	links, err := net.Interfaces()
	if err != nil {
		return nil, unreadable("interfaces", err)
	}
	h := &Host{Sysfs: "/sys"}
	h.Resolve = func(ctx context.Context, name string) ([]netip.Addr, error) {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	}
	for _, l := range links {
		h.Interfaces = append(h.Interfaces, ifname.Interface{
			Index: l.Index, Name: l.Name, MTU: l.MTU, Running: l.Flags&net.FlagRunning != 0})
	}
	if h.Addresses, err = bindable(); err != nil {
		return nil, unreadable("addresses", err)
	}
	return h, nil
}

// Down says why nothing passes the interface now, "" while something can.
func (d *Device) Down() string {
	if l, err := net.InterfaceByName(d.Name); err == nil && l.Flags&net.FlagRunning == 0 {
		return "the link is down"
	}
	return ""
}

func unreadable(what string, err error) error {
	return report.Errorf(report.Host, "devices", "cannot read the %s of this machine: %w", what, err).
		Try("allow AF_NETLINK sockets: a seccomp or container profile forbids them")
}
