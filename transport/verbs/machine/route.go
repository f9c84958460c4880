package machine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// fibMatch is RTM_F_FIB_MATCH: the answer is an entry of the routing table. Without
// it the kernel takes any address for a neighbour once a device is named.
const fibMatch = 0x2000

// kernelRoute looks for a route from an address by a network device.
func kernelRoute(dev string, from, to netip.Addr) (bool, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return false, fmt.Errorf("netlink socket: %w", err)
	}
	defer unix.Close(fd)
	link, err := interfaceIndex(fd, dev)
	if err != nil {
		return false, err
	}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}); err != nil {
		return false, fmt.Errorf("netlink socket: %w", err)
	}
	if err := unix.Sendto(fd, routeRequest(link, from, to), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return false, fmt.Errorf("netlink RTM_GETROUTE: %w", err)
	}
	b := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, b, 0)
	if err != nil {
		return false, fmt.Errorf("netlink RTM_GETROUTE: %w", err)
	}
	return routeAnswer(b[:n], link)
}

// interfaceIndex asks for one interface: package net would list all of them, at each connect.
func interfaceIndex(fd int, dev string) (int, error) {
	r, err := unix.NewIfreq(dev)
	if err == nil {
		err = unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, r)
	}
	if err != nil {
		return 0, fmt.Errorf("index of interface %s: %w", dev, err)
	}
	return int(r.Uint32()), nil
}

// leavesBy is RTA_OIF among a route's attributes; 0: it is not there.
func leavesBy(attributes []byte) int {
	ne := binary.NativeEndian
	for b := attributes; len(b) >= unix.SizeofRtAttr; {
		n := int(ne.Uint16(b))
		if n < unix.SizeofRtAttr || n > len(b) {
			break
		}
		if ne.Uint16(b[2:]) == unix.RTA_OIF && n >= unix.SizeofRtAttr+4 {
			return int(ne.Uint32(b[unix.SizeofRtAttr:]))
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return 0
}

// routeRequest is a nlmsghdr, an rtmsg and three attributes.
func routeRequest(link int, from, to netip.Addr) []byte {
	ne := binary.NativeEndian
	b := make([]byte, unix.SizeofNlMsghdr+unix.SizeofRtMsg)
	ne.PutUint16(b[4:], unix.RTM_GETROUTE)
	ne.PutUint16(b[6:], unix.NLM_F_REQUEST)
	rt := b[unix.SizeofNlMsghdr:]
	rt[0] = unix.AF_INET
	if to.Is6() {
		rt[0] = unix.AF_INET6
	}
	rt[1], rt[2] = byte(to.BitLen()), byte(from.BitLen()) // lengths of destination and source
	ne.PutUint32(rt[8:], fibMatch)
	attribute := func(kind uint16, value []byte) {
		b = ne.AppendUint16(b, uint16(unix.SizeofRtAttr+len(value)))
		b = append(ne.AppendUint16(b, kind), value...) // 4 and 16 bytes need no padding
	}
	attribute(unix.RTA_DST, to.AsSlice())
	attribute(unix.RTA_SRC, from.AsSlice())
	attribute(unix.RTA_OIF, ne.AppendUint32(nil, uint32(link)))
	ne.PutUint32(b, uint32(len(b)))
	return b
}

// routeAnswer reads the kernel's: a route, by that device or by another (IPv6 takes
// the loopback device for none), or why there is none.
func routeAnswer(b []byte, link int) (bool, error) {
	ne := binary.NativeEndian
	if len(b) < unix.SizeofNlMsghdr+4 {
		return false, fmt.Errorf("netlink RTM_GETROUTE: an answer of %d bytes", len(b))
	}
	body := b[unix.SizeofNlMsghdr:]
	switch kind := ne.Uint16(b[4:]); kind {
	case unix.RTM_NEWROUTE:
		if len(body) < unix.SizeofRtMsg {
			return false, fmt.Errorf("netlink RTM_GETROUTE: a route of %d bytes", len(body))
		}
		unicast := body[7] == unix.RTN_UNICAST || body[7] == unix.RTN_LOCAL
		return unicast && leavesBy(body[unix.SizeofRtMsg:]) == link, nil
	case unix.NLMSG_ERROR:
		errno := unix.Errno(-int32(ne.Uint32(body)))
		if errors.Is(errno, unix.ENETUNREACH) || errors.Is(errno, unix.EHOSTUNREACH) {
			return false, nil
		}
		return false, fmt.Errorf("netlink RTM_GETROUTE: %w", errno)
	default:
		return false, fmt.Errorf("netlink RTM_GETROUTE: an answer of type %d", kind)
	}
}
