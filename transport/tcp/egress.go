package tcp

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Egress remembers for a moment by which interfaces addresses are reached, as the
// kernel's routes have it: a connection may leave by another one than that whose
// address it has.
type Egress struct {
	mu   sync.Mutex
	at   time.Time                // protected by mu, as all below
	have map[[2]netip.Addr]string // by local and remote address
}

const egressFresh = time.Second

// Interface names the one by which packets of the socket fd leave; "" if the kernel does
// not tell.
func (e *Egress) Interface(fd int, local, remote netip.Addr) string {
	if bound, err := unix.GetsockoptString(fd, unix.SOL_SOCKET, unix.SO_BINDTODEVICE); err == nil && bound != "" {
		return bound
	}
	if zone := remote.Zone(); zone != "" { // a link-local address is one of an interface
		return zone
	}
	local, remote = local.Unmap(), remote.Unmap()
	key := [2]netip.Addr{local, remote}
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := time.Now(); now.Sub(e.at) > egressFresh {
		e.at, e.have = now, map[[2]netip.Addr]string{}
	}
	name, ok := e.have[key]
	if !ok {
		if index, err := route(local, remote); err == nil {
			name = interfaceName(fd, index)
		}
		e.have[key] = name
	}
	return name
}

// interfaceName asks a socket's network namespace for one name: package net would list all its interfaces.
func interfaceName(fd, index int) string {
	r, err := unix.NewIfreq("")
	if err != nil {
		return ""
	}
	r.SetUint32(uint32(index))
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFNAME, r); err != nil {
		return ""
	}
	return r.Name()
}

// route asks the kernel by which interface packets from local to remote leave.
func route(local, remote netip.Addr) (index int, err error) {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return 0, fmt.Errorf("netlink socket: %w", err)
	}
	defer unix.Close(s)
	if err := unix.Sendto(s, routeQuestion(local, remote), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, fmt.Errorf("asking for a route: %w", err)
	}
	b := make([]byte, 4096)
	n, _, err := unix.Recvfrom(s, b, unix.MSG_DONTWAIT) // the kernel answers before sendto returns
	if err != nil {
		return 0, fmt.Errorf("reading a route: %w", err)
	}
	all, err := syscall.ParseNetlinkMessage(b[:n])
	if err != nil {
		return 0, fmt.Errorf("reading a route: %w", err)
	}
	for i := range all {
		if all[i].Header.Type != unix.RTM_NEWROUTE {
			continue
		}
		attrs, err := syscall.ParseNetlinkRouteAttr(&all[i])
		if err != nil {
			return 0, fmt.Errorf("reading a route: %w", err)
		}
		for _, a := range attrs {
			if a.Attr.Type == unix.RTA_OIF && len(a.Value) >= 4 {
				return int(binary.NativeEndian.Uint32(a.Value)), nil
			}
		}
	}
	return 0, fmt.Errorf("no route from %v to %v", local, remote)
}

// routeQuestion is an RTM_GETROUTE: nlmsghdr, rtmsg and the addresses as attributes.
func routeQuestion(local, remote netip.Addr) []byte {
	family := byte(unix.AF_INET)
	if remote.Is6() {
		family = unix.AF_INET6
	}
	ne, bits := binary.NativeEndian, byte(remote.BitLen())
	b := make([]byte, unix.SizeofNlMsghdr)
	b = append(b, family, bits, bits, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	for _, a := range []struct {
		kind uint16
		addr netip.Addr
	}{{unix.RTA_DST, remote}, {unix.RTA_SRC, local}} {
		text := a.addr.AsSlice()
		b = ne.AppendUint16(ne.AppendUint16(b, uint16(unix.SizeofRtAttr+len(text))), a.kind)
		b = append(b, text...)
	}
	ne.PutUint32(b, uint32(len(b)))
	ne.PutUint16(b[4:], unix.RTM_GETROUTE)
	ne.PutUint16(b[6:], unix.NLM_F_REQUEST)
	return b
}
