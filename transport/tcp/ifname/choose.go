package ifname

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"weft/internal/knob"
	"weft/internal/report"
)

// Choice is one interface with the addresses to use, best first.
type Choice struct {
	Interface
	Addrs []netip.Prefix
}

// Choose applies NCCL's order of searches and says which one hit.
func (h *Host) Choose(k *knob.Values, log report.Logger) ([]Choice, string) {
	family := k.Text(knob.SocketFamily)
	// NCCL ignores a list of one character.
	if list := k.Text(knob.SocketIfname); len(list) > 1 {
		return h.search(list, family), "NCCL_SOCKET_IFNAME=" + list
	}
	if found := h.search("ib", family); len(found) > 0 {
		return found, "the name begins with ib"
	}
	if id := k.Text(knob.CommID); len(id) > 1 {
		if found, err := h.nearCommID(id, family); err != nil {
			log.Warn("NCCL_COMM_ID=%s gives no hint for the choice of an interface: %v; set NCCL_SOCKET_IFNAME", id, err)
		} else if len(found) > 0 {
			return found, "shares the subnet of NCCL_COMM_ID=" + id
		}
	}
	for _, list := range []string{"^docker,lo,virbr", "docker", "lo", "virbr"} {
		if found := h.search(list, family); len(found) > 0 {
			return found, "default search " + list
		}
	}
	return nil, "default search"
}

// search lists the running interfaces that the filter takes, in the order in
// which their first address of the family appears.
func (h *Host) search(list, family string) []Choice {
	f := parseFilter(list)
	var found []Choice
	place := map[int]int{}
	for _, a := range h.Addresses {
		link, ok := h.byIndex(a.IfIndex)
		if !ok || !link.Running || !f.takes(link.Name) || !familyIs(a.Prefix.Addr(), family) {
			continue
		}
		if a.Prefix.Addr().Is6() && a.Prefix.Addr().IsLoopback() {
			continue
		}
		at, have := place[a.IfIndex]
		if !have {
			if len(found) == maxInterfaces {
				continue
			}
			at = len(found)
			place[a.IfIndex] = at
			found = append(found, Choice{Interface: link})
		}
		found[at].Addrs = append(found[at].Addrs, a.Prefix)
	}
	for i := range found {
		found[i].Addrs = linkLocalLast(found[i].Addrs)
	}
	return found
}

// linkLocalLast keeps the kernel's order otherwise: an fe80 address is of use
// only to a neighbour on the same link, so it is advertised after all others.
func linkLocalLast(addrs []netip.Prefix) []netip.Prefix {
	var global, local []netip.Prefix
	for _, p := range addrs {
		if p.Addr().Is6() && p.Addr().IsLinkLocalUnicast() {
			local = append(local, p)
		} else {
			global = append(global, p)
		}
	}
	return append(global, local...)
}

func familyIs(a netip.Addr, family string) bool {
	switch family {
	case "AF_INET":
		return a.Is4()
	case "AF_INET6":
		return a.Is6()
	}
	return true
}

// nearCommID finds the one interface that shares a subnet with the address of
// rank 0, that address first.
func (h *Host) nearCommID(id, family string) ([]Choice, error) {
	target, err := h.commIDAddr(id)
	if err != nil {
		return nil, err
	}
	for _, a := range h.Addresses {
		link, ok := h.byIndex(a.IfIndex)
		if !ok || !a.Prefix.Contains(target.WithZone("")) || !sameZone(link, target) {
			continue
		}
		for _, c := range h.search("="+link.Name, family) {
			return []Choice{{c.Interface, firstOf(c.Addrs, a.Prefix)}}, nil
		}
	}
	return nil, nil
}

// sameZone: two link-local addresses share a subnet only on the same link.
func sameZone(link Interface, a netip.Addr) bool {
	if !a.Is6() || !a.IsLinkLocalUnicast() {
		return true
	}
	return a.Zone() == link.Name || a.Zone() == fmt.Sprint(link.Index)
}

func firstOf(all []netip.Prefix, p netip.Prefix) []netip.Prefix {
	sorted := []netip.Prefix{}
	for _, q := range all {
		if q == p {
			sorted = append([]netip.Prefix{q}, sorted...)
		} else {
			sorted = append(sorted, q)
		}
	}
	return sorted
}

// commIDAddr reads address:port, [IPv6%zone]:port or name:port.
func (h *Host) commIDAddr(id string) (netip.Addr, error) {
	if rest, ok := strings.CutPrefix(id, "["); ok {
		text, _, closed := strings.Cut(rest, "]")
		if !closed {
			return netip.Addr{}, fmt.Errorf("no ] after the IPv6 address")
		}
		return netip.ParseAddr(text)
	}
	name, _, _ := strings.Cut(id, ":")
	if a, err := netip.ParseAddr(name); err == nil {
		return a, nil
	}
	if h.Resolve == nil {
		return netip.Addr{}, fmt.Errorf("%q is no address", name)
	}
	// init waits for this, so a dead name server must not hold it for long.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	addrs, err := h.Resolve(ctx, name)
	if err != nil {
		return netip.Addr{}, err
	}
	if len(addrs) == 0 {
		return netip.Addr{}, fmt.Errorf("%q resolves to nothing", name)
	}
	return addrs[0].Unmap(), nil
}
