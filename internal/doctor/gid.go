package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"weft/internal/doctor/machine"
	"weft/internal/knob"
)

// gidWishes are the knobs that choose a GID.
type gidWishes struct {
	pinned  map[string]int // by "name" and "name:port"; "": the others
	ipv6    bool
	v2      bool
	within  netip.Prefix // not valid: everywhere
	setting machine.Setting
}

func (x *Exam) gidWishes() (w gidWishes) {
	k := x.knobs
	w = gidWishes{pinned: map[string]int{}, ipv6: k.Text(knob.IBAddrFamily) == "AF_INET6", v2: k.Int(knob.IBRoceVersion) != 1}
	w.setting = x.set("NCCL_IB_GID_INDEX")
	for entry := range strings.SplitSeq(k.Text(knob.IBGIDIndex), ",") {
		name, value, named := strings.Cut(strings.TrimSpace(entry), "=")
		if !named {
			name, value = "", name
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(value), 0, 32); err == nil && n >= -1 && n <= 255 {
			w.pinned[name] = int(n)
		}
	}
	if p, err := netip.ParsePrefix(k.Text(knob.IBAddrRange)); err == nil && p.Addr().Is4() != w.ipv6 {
		w.within = p.Masked()
	}
	return w
}

// pin is the entry that is asked for; -1: none.
func (w gidWishes) pin(p *machine.Port) int {
	for _, name := range []string{p.String(), p.Card.Name, ""} {
		if n, ok := w.pinned[name]; ok {
			return n
		}
	}
	return -1
}

// demerits of an entry: the fewer the better, the first of equals is taken.
func (w gidWishes) demerits(g machine.GID) (sum int) {
	addr := g.Addr.Unmap()
	for i, bad := range []bool{
		g.V2 != w.v2,
		addr.Is4() == w.ipv6,
		w.within.IsValid() && !w.within.Contains(addr),
		g.LinkLocal() || addr.IsLoopback(),
	} {
		if bad {
			sum |= 1 << i
		}
	}
	return sum
}

// usable are the entries that weft may take: those whose network device is here and up.
func (x *Exam) usable(p *machine.Port) []machine.GID {
	return slices.DeleteFunc(slices.Clone(p.GIDs), func(g machine.GID) bool {
		n := x.NIC(g.NetDev)
		return !p.IB && (g.NetDev == "" || n == nil || !n.Up)
	})
}

// choose is the entry that weft takes, and why; false: there is none. A port of InfiniBand has its first.
func (w gidWishes) choose(p *machine.Port, usable []machine.GID) (g machine.GID, why string, ok bool) {
	if len(usable) == 0 {
		return g, "no entry is usable", false
	}
	if p.IB {
		return usable[0], "the first entry", true
	}
	if i := w.pin(p); i >= 0 {
		at := slices.IndexFunc(usable, func(g machine.GID) bool { return g.Index == i })
		if at < 0 {
			return g, fmt.Sprintf("NCCL_IB_GID_INDEX asks for entry %d, which is not usable", i), false
		}
		return usable[at], "NCCL_IB_GID_INDEX=" + w.setting.Value, true
	}
	best := slices.MinFunc(usable, func(a, b machine.GID) int { return w.demerits(a) - w.demerits(b) })
	if w.demerits(best) == 0 {
		return best, fmt.Sprintf("the first that fits, of %d usable entries", len(usable)), true
	}
	return best, fmt.Sprintf("the best of %d usable entries, none of which is %s", len(usable), w), true
}

// String is what an entry should be.
func (w gidWishes) String() string {
	s := "IPv4"
	if w.ipv6 {
		s = "IPv6"
	}
	if w.v2 {
		s += ", RoCE v2"
	} else {
		s += ", RoCE v1"
	}
	if w.within.IsValid() {
		s += ", in " + w.within.String()
	}
	return s + " and routable"
}

// kindOf is an entry's kind in a few words.
func kindOf(g machine.GID) string {
	s := "RoCE v1"
	if g.V2 {
		s = "RoCE v2"
	}
	if g.LinkLocal() {
		return s + ", link-local"
	}
	if g.Addr.Unmap().Is4() {
		return s + ", IPv4"
	}
	return s + ", IPv6"
}

func kindOfIndex(g machine.GID) string {
	return fmt.Sprintf("%d %v (%s)", g.Index, g.Addr.Unmap(), kindOf(g))
}
