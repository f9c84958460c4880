package gid

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/rdma"
)

// Rules are the knobs that choose a GID.
type Rules struct {
	forced  map[string]int // by "name" and "name:port"
	all     int            // index for the devices that are not in forced; -1: choose
	text    string         // NCCL_IB_GID_INDEX as it was set
	flid    int
	ipv6    bool
	within  netip.Prefix // invalid: everywhere
	version rdma.GIDType
}

// RulesOf reads the knobs; the lines say what of them cannot be used.
func RulesOf(k *knob.Values) (r Rules, problems []string) {
	r = Rules{
		all: -1, text: k.Text(knob.IBGIDIndex), flid: int(k.Int(knob.IBRoutableFLID)), ipv6: k.Text(knob.IBAddrFamily) == "AF_INET6",
		version: rdma.GIDType(k.Int(knob.IBRoceVersion)),
	}
	r.forced, r.all, problems = parseGIDIndex(r.text)
	if text := k.Text(knob.IBAddrRange); text != "" {
		within, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
			problems = append(problems, fmt.Sprintf("NCCL_IB_ADDR_RANGE=%q is not address/length and is ignored", text))
		case within.Addr().Is4() == r.ipv6:
			problems = append(problems, fmt.Sprintf("NCCL_IB_ADDR_RANGE=%s is not of the family that NCCL_IB_ADDR_FAMILY asks for and is ignored", text))
		default:
			r.within = within.Masked()
		}
	}
	return r, problems
}

// parseGIDIndex reads NCCL_IB_GID_INDEX: one number for all, or a list of
// name[:port]=index in which a bare number is for the rest.
func parseGIDIndex(text string) (forced map[string]int, all int, problems []string) {
	forced, all = map[string]int{}, -1
	if text == "" {
		return forced, all, nil
	}
	for entry := range strings.SplitSeq(text, ",") {
		name, value, named := strings.Cut(strings.TrimSpace(entry), "=")
		if !named {
			name, value = "", name
		}
		index, err := strconv.ParseInt(strings.TrimSpace(value), 0, 32)
		switch {
		case err != nil || index < -1 || index > 255 || named && name == "":
			problems = append(problems, fmt.Sprintf("NCCL_IB_GID_INDEX: %q is neither an index (-1 to 255) nor name[:port]=index and is ignored", entry))
		case named:
			forced[name] = int(index)
		default:
			all = int(index)
		}
	}
	return forced, all, problems
}

// Pin is the entry that NCCL_IB_GID_INDEX asks for on a port; -1: none.
func (r Rules) Pin(dev string, port uint8) int {
	if i, ok := r.forced[fmt.Sprintf("%s:%d", dev, port)]; ok {
		return i
	}
	if i, ok := r.forced[dev]; ok {
		return i
	}
	return r.all
}

// Unpinned are the same rules without NCCL_IB_GID_INDEX.
func (r Rules) Unpinned() Rules {
	r.forced, r.all, r.text = nil, -1, ""
	return r
}

// Within is NCCL_IB_ADDR_RANGE; not valid: everywhere.
func (r Rules) Within() netip.Prefix { return r.within }

// Choose orders a port's usable GIDs, best first, and says in a few words why
// the first one is. NCCL's own search finds the same entry where it finds a
// good one; where it would stay at entry 0 without a word, this goes on.
func (r Rules) Choose(dev string, port uint8, link uint8, gids []GID) ([]GID, string, error) {
	none := func(format string, a ...any) *report.Error {
		return report.Errorf(report.Host, "choose a GID", format, a...).On(fmt.Sprintf("%s:%d", dev, port))
	}
	if len(gids) == 0 {
		return nil, "", none("the table has no usable entry").
			Try("bring the network device behind it up and give it an address, in this network namespace").See("WEFT-042 WEFT-045")
	}
	if link == rdma.LinkInfiniBand {
		return r.chooseIB(gids)
	}
	if i := r.Pin(dev, port); i >= 0 {
		at := slices.IndexFunc(gids, func(g GID) bool { return g.Index == i })
		if at < 0 {
			err := none("NCCL_IB_GID_INDEX=%s: entry %d is empty, unreadable, or its network device is down; usable are %v", r.text, i, gids)
			err.Cause = report.Usage
			return nil, "", err.Try("unset NCCL_IB_GID_INDEX, or name one of these").See("WEFT-040 WEFT-044")
		}
		return gids[at : at+1], "NCCL_IB_GID_INDEX=" + r.text, nil
	}
	ordered := slices.Clone(gids)
	slices.SortStableFunc(ordered, func(a, b GID) int { return r.Demerits(a) - r.Demerits(b) })
	return ordered, r.reason(ordered[0], len(gids)), nil
}

func (r Rules) chooseIB(gids []GID) ([]GID, string, error) {
	for _, g := range gids {
		if g.Index == r.flid && g.FLID() != 0 {
			return []GID{g}, fmt.Sprintf("it has a FLID (%d), which routes between subnets", g.FLID()), nil
		}
	}
	return gids[:1], "the first entry, as no entry that routes between subnets is set up", nil
}

const (
	otherVersion = 1 << iota
	otherFamily
	outOfRange
	notRoutable
)

// Demerits are what is wrong with an entry, as bits: the smaller the number the better, and the first of equals is taken.
func (r Rules) Demerits(g GID) int {
	addr, sum := g.Addr.Unmap(), 0
	if g.Type != r.version {
		sum |= otherVersion
	}
	if addr.Is4() == r.ipv6 {
		sum |= otherFamily
	}
	if r.within.IsValid() && !r.within.Contains(addr) {
		sum |= outOfRange
	}
	if g.linkLocal() || addr.IsLoopback() {
		sum |= notRoutable
	}
	return sum
}

func (r Rules) reason(g GID, of int) string {
	family := "IPv4"
	if r.ipv6 {
		family = "IPv6"
	}
	sum := r.Demerits(g)
	if sum == 0 {
		return fmt.Sprintf("the first %s %s address of %d usable entries", family, r.version, of)
	}
	var lacks []string
	for _, d := range []struct {
		bit  int
		text string
	}{
		{notRoutable, "only link-local addresses, which no subnet but their own reaches"},
		{outOfRange, "none in NCCL_IB_ADDR_RANGE=" + r.within.String()},
		{otherFamily, "no such " + family + " address"},
		{otherVersion, "none for " + r.version.String()},
	} {
		if sum&d.bit != 0 {
			lacks = append(lacks, d.text)
		}
	}
	return fmt.Sprintf("the best of %d usable entries: %s", of, strings.Join(lacks, ", "))
}
