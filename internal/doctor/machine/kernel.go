package machine

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// kernel is what only system calls of the machine itself tell. A copy tells it in files.
type kernel interface {
	addresses() []Address // in the order in which the kernel lists them
}

// liveKernel asks this machine.
type liveKernel struct{}

func (liveKernel) addresses() (all []Address) {
	links, err := net.Interfaces()
	if err != nil {
		return nil // a profile of the container forbids netlink: as a machine without addresses, which a rule tells of
	}
	for _, want4 := range []bool{true, false} {
		for _, l := range links {
			addrs, _ := l.Addrs() // a device that vanished meanwhile has none
			for _, a := range addrs {
				n, ok := a.(*net.IPNet)
				if !ok {
					continue
				}
				ip, ok := netip.AddrFromSlice(n.IP)
				bits, _ := n.Mask.Size()
				if ok && ip.Unmap().Is4() == want4 {
					all = append(all, Address{l.Name, netip.PrefixFrom(ip.Unmap(), bits)})
				}
			}
		}
	}
	return all
}

// fileKernel reads a copy.
type fileKernel struct{ m *Machine }

// The files that a copy may have besides the machine's own: a line for each address, "eth0 10.0.0.1/24", and the counters of a
// second look, "/sys/... 17".
const (
	addressFile = "/weft/addresses"
	laterFile   = "/weft/later"
)

func addressText(all []Address) string {
	var b strings.Builder
	for _, a := range all {
		fmt.Fprintf(&b, "%s %v\n", a.Dev, a.Prefix)
	}
	return b.String()
}

// addresses are those of addressFile, else what proc tells: of IPv4 the local addresses that lie in a subnet to which a device has a
// route, so that of two devices in one subnet the first has both.
func (k fileKernel) addresses() (all []Address) {
	if k.m.Exists(addressFile) {
		for _, line := range k.m.Lines(addressFile) {
			dev, text, _ := strings.Cut(line, " ")
			if p, err := netip.ParsePrefix(strings.TrimSpace(text)); err == nil {
				all = append(all, Address{dev, p})
			}
		}
		return all
	}
	return append(k.fourth(), k.sixth()...)
}

func (k fileKernel) fourth() (all []Address) {
	type route struct {
		dev string
		to  netip.Prefix
	}
	var routes []route
	for _, line := range k.m.Lines("/proc/net/route") {
		f := strings.Fields(line)
		if len(f) < 8 || f[2] != "00000000" {
			continue // a head, or by a gateway
		}
		to, ok1 := reversed(f[1])
		mask, ok2 := reversed(f[7])
		if ok1 && ok2 {
			ones, _ := net.IPMask(mask.AsSlice()).Size()
			routes = append(routes, route{f[0], netip.PrefixFrom(to, ones)})
		}
	}
	for _, addr := range k.locals() {
		if addr.IsLoopback() {
			all = append(all, Address{"lo", netip.PrefixFrom(addr, 8)})
			continue
		}
		for _, r := range routes {
			if r.to.Contains(addr) && r.to.Bits() > 0 {
				all = append(all, Address{r.dev, netip.PrefixFrom(addr, r.to.Bits())})
				break
			}
		}
	}
	return all
}

// locals are the addresses that fib_trie calls "host LOCAL", each once.
func (k fileKernel) locals() (all []netip.Addr) {
	seen := map[netip.Addr]bool{}
	var last netip.Addr
	s := bufio.NewScanner(bytes.NewReader([]byte(k.m.Text("/proc/net/fib_trie"))))
	for s.Scan() {
		line := strings.TrimSpace(s.Text())
		if text, ok := strings.CutPrefix(line, "|-- "); ok {
			last, _ = netip.ParseAddr(text)
		} else if line == "/32 host LOCAL" && last.IsValid() && !seen[last] {
			seen[last] = true
			all = append(all, last)
		}
	}
	return all
}

// reversed reads an address as /proc/net/route has it.
func reversed(text string) (netip.Addr, bool) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != 4 {
		return netip.Addr{}, false
	}
	return netip.AddrFrom4([4]byte(binary.LittleEndian.AppendUint32(nil, binary.BigEndian.Uint32(b)))), true
}

func (k fileKernel) sixth() (all []Address) {
	for _, line := range k.m.Lines("/proc/net/if_inet6") {
		f := strings.Fields(line)
		if len(f) != 6 {
			continue
		}
		b, err := hex.DecodeString(f[0])
		var bits int
		if _, scan := fmt.Sscanf(f[2], "%x", &bits); err != nil || scan != nil || len(b) != 16 || bits > 128 {
			continue
		}
		all = append(all, Address{f[5], netip.PrefixFrom(netip.AddrFrom16([16]byte(b)), bits)})
	}
	return all
}
