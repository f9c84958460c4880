package wire

import "net/netip"

const (
	kindIPv4 = 4
	kindIPv6 = 6
	sizeIPv4 = 8  // kind, prefix, port, 4 bytes of address
	sizeIPv6 = 20 // kind, prefix, port, 16 bytes of address
)

// Endpoint is struct {kind 1, prefix 1, port 2, addr 4 or 16}: where a process
// can be reached, and how wide that address's subnet is.
type Endpoint struct {
	Addr   netip.Addr // no zone: a zone means nothing to another host
	Prefix uint8
	Port   uint16
}

// Size is the number of bytes that e takes.
func (e Endpoint) Size() int {
	if e.Addr.Is4() {
		return sizeIPv4
	}
	return sizeIPv6
}

// AddrPort is the address to dial.
func (e Endpoint) AddrPort() netip.AddrPort { return netip.AddrPortFrom(e.Addr, e.Port) }

func (e Endpoint) append(dst []byte) []byte {
	kind := byte(kindIPv6)
	if e.Addr.Is4() {
		kind = kindIPv4
	}
	dst = append(dst, kind, e.Prefix)
	dst = le.AppendUint16(dst, e.Port)
	return append(dst, e.Addr.AsSlice()...)
}

func (c *cursor) endpoint() Endpoint {
	kind, prefix, port := c.u8(), c.u8(), c.u16()
	var e Endpoint
	switch kind {
	case kindIPv4:
		var a [4]byte
		c.copy(a[:])
		e = Endpoint{Addr: netip.AddrFrom4(a), Prefix: prefix, Port: port}
	case kindIPv6:
		var a [16]byte
		c.copy(a[:])
		e = Endpoint{Addr: netip.AddrFrom16(a), Prefix: prefix, Port: port}
	default:
		c.bad = true
	}
	if c.bad || e.Addr.Is4In6() || e.Addr.IsUnspecified() || e.Addr.IsMulticast() || int(prefix) > e.Addr.BitLen() {
		c.bad = true
		return Endpoint{}
	}
	return e
}
