package doctor

import (
	"fmt"
	"net/netip"
	"slices"

	"weft/internal/doctor/machine"
	"weft/transport/rdma"
	"weft/transport/verbs/gid"
)

// gidWishes are the knobs that choose a GID, and the one that names an entry.
type gidWishes struct {
	gid.Rules
	setting machine.Setting
}

func (x *Exam) gidWishes() gidWishes {
	rules, _ := gid.RulesOf(x.knobs)
	return gidWishes{rules, x.set("NCCL_IB_GID_INDEX")}
}

// pin is the entry that is asked for; -1: none.
func (w gidWishes) pin(p *machine.Port) int { return w.Pin(p.Card.Name, uint8(p.Number)) }

func (w gidWishes) demerits(g machine.GID) int { return w.Demerits(asWeft(g, false)) }

// asWeft is an entry as weft sees it, but for its subnet, which no choice looks at.
func asWeft(g machine.GID, ib bool) gid.GID {
	of := gid.GID{Addr: netip.AddrFrom16(g.Addr.As16()), Index: g.Index, Type: rdma.GIDRoCEv1, NetDev: g.NetDev}
	switch {
	case ib:
		of.Type = rdma.GIDInfiniBand
	case g.V2:
		of.Type = rdma.GIDRoCEv2
	}
	return of
}

// usable are the entries that weft may take: those whose network device is here and up.
func (x *Exam) usable(p *machine.Port) []machine.GID {
	return slices.DeleteFunc(slices.Clone(p.GIDs), func(g machine.GID) bool {
		n := x.NIC(g.NetDev)
		return !p.IB && (g.NetDev == "" || n == nil || !n.Up)
	})
}

// choose is the entry that weft takes, by its own rules, and why; false: there is none.
func (w gidWishes) choose(p *machine.Port, usable []machine.GID) (g machine.GID, why string, ok bool) {
	if len(usable) == 0 {
		return g, "no entry is usable", false
	}
	link, table := uint8(rdma.LinkEthernet), []gid.GID{}
	if p.IB {
		link = rdma.LinkInfiniBand
	}
	for _, g := range usable {
		table = append(table, asWeft(g, p.IB))
	}
	ordered, why, err := w.Choose(p.Card.Name, uint8(p.Number), link, table)
	if err != nil {
		return g, fmt.Sprintf("NCCL_IB_GID_INDEX asks for entry %d, which is not usable", w.pin(p)), false
	}
	at := slices.IndexFunc(usable, func(g machine.GID) bool { return g.Index == ordered[0].Index })
	return usable[at], why, true
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
