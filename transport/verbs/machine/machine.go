// Package machine is what the RDMA side looks at of this machine besides libibverbs: sysfs, network devices, routes, PCI.
// Tests describe other machines with it.
package machine

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"weft/internal/report"
)

// Link is a network device, as far as a GID needs it.
type Link struct {
	Index int
	Name  string
	Up    bool // up, and with a carrier
	Addrs []netip.Prefix
}

// Machine is what discovery looks at besides the library. Tests describe other
// machines with it.
type Machine struct {
	Root  string // "/": sysfs and procfs are below it
	Links func() ([]Link, error)
	Route func(dev string, from, to netip.Addr) (bool, error) // whether one leaves by the network device
}

// This asks the kernel.
func This() *Machine {
	return &Machine{Root: "/", Links: kernelLinks, Route: kernelRoute}
}

// Sys is a file of sysfs.
func (m *Machine) Sys(parts ...string) string {
	return filepath.Join(m.Root, "sys", filepath.Join(parts...))
}

// Cards are the RDMA devices that the kernel has, whether they can be used or not.
func (m *Machine) Cards() (names []string) {
	entries, _ := os.ReadDir(m.Sys("class/infiniband")) // no folder: no RDMA in this kernel
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func kernelLinks() ([]Link, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, report.Errorf(report.Host, "devices", "cannot read the network devices of this machine: %w", err).
			Try("allow AF_NETLINK sockets: a seccomp or container profile forbids them")
	}
	links := make([]Link, 0, len(all))
	for _, l := range all {
		link := Link{Index: l.Index, Name: l.Name, Up: l.Flags&net.FlagRunning != 0}
		addrs, _ := l.Addrs() // a device that vanished meanwhile has none
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok {
				if ip, ok := netip.AddrFromSlice(n.IP); ok {
					bits, _ := n.Mask.Size()
					link.Addrs = append(link.Addrs, netip.PrefixFrom(ip.Unmap(), bits))
				}
			}
		}
		links = append(links, link)
	}
	return links, nil
}

// Read returns the text of a sysfs file without the end of its line.
func Read(parts ...string) (string, error) {
	text, err := os.ReadFile(filepath.Join(parts...))
	return strings.TrimSpace(string(text)), err
}

// Exists reports whether there is a file or folder.
func Exists(parts ...string) bool {
	_, err := os.Stat(filepath.Join(parts...))
	return err == nil
}
