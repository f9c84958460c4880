package machine

import (
	"encoding/hex"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Card is an RDMA device of the kernel.
type Card struct {
	Name       string
	Path       string    // in sysfs, resolved
	PCI        *Function // nil: software
	Board      string    // kind of card
	Firmware   string
	SystemGUID string // of the whole card
	Verbs      string // uverbsN
	Ports      []*Port
}

// Port is one of a card's, as sysfs shows it.
type Port struct {
	Card   *Card
	Number int
	Path   string
	State  string  // ACTIVE, INIT, DOWN ...
	Phys   string  // LinkUp, Polling, Disabled ...
	IB     bool    // InfiniBand, not Ethernet
	Gbps   float64 // of the link
	Lanes  int
	Rate   string // as the kernel says it: 400 Gb/sec (4X NDR)
	GIDs   []GID  // without empty entries
}

// GID is an entry of a port's table.
type GID struct {
	Index  int
	Addr   netip.Addr // 16 bytes; IPv4-mapped for an IPv4 address
	V2     bool       // RoCE v2; false: v1, or InfiniBand
	NetDev string     // "": not in this network namespace
}

// LinkLocal reports an address that means something on its own link only.
func (g GID) LinkLocal() bool { return g.Addr.Unmap().IsLinkLocalUnicast() }

func (p *Port) String() string { return p.Card.Name + ":" + strconv.Itoa(p.Number) }

// Active reports a port that carries traffic.
func (p *Port) Active() bool { return p.State == "ACTIVE" }

// NetDev is the network device of a RoCE port: of its first GID that has one, else of its card.
func (p *Port) NetDev(m *Machine) string {
	for _, g := range p.GIDs {
		if g.NetDev != "" {
			return g.NetDev
		}
	}
	for _, name := range m.List(p.Card.Path, "device/net") {
		return name
	}
	return ""
}

const rdmaFolder = "/sys/class/infiniband"

// Cards are the RDMA devices that the kernel has, by name.
func (m *Machine) Cards() []*Card { return m.cards() }

// Ports are those of all cards.
func (m *Machine) Ports() (all []*Port) {
	for _, c := range m.Cards() {
		all = append(all, c.Ports...)
	}
	return all
}

func (m *Machine) readCards() (all []*Card) {
	verbs := map[string]string{}
	for _, name := range m.List("/sys/class/infiniband_verbs") {
		if strings.HasPrefix(name, "uverbs") {
			verbs[m.Text("/sys/class/infiniband_verbs", name, "ibdev")] = name
		}
	}
	for _, name := range m.List(rdmaFolder) {
		at, err := m.resolve(path.Join(rdmaFolder, name))
		if err != nil {
			continue
		}
		c := &Card{Name: name, Path: at, PCI: m.function(at, "device"), Verbs: verbs[name]}
		c.Board, c.Firmware, c.SystemGUID = m.Text(at, "board_id"), m.Text(at, "fw_ver"), m.Text(at, "sys_image_guid")
		for _, number := range m.List(at, "ports") {
			if n, err := strconv.Atoi(number); err == nil {
				c.Ports = append(c.Ports, m.readPort(c, n, path.Join(at, "ports", number)))
			}
		}
		all = append(all, c)
	}
	return all
}

var lanes = regexp.MustCompile(`\((\d+)X`)

func (m *Machine) readPort(c *Card, number int, at string) *Port {
	p := &Port{Card: c, Number: number, Path: at, Rate: m.Text(at, "rate"), IB: m.Text(at, "link_layer") == "InfiniBand"}
	_, p.State, _ = strings.Cut(m.Text(at, "state"), ": ")
	_, p.Phys, _ = strings.Cut(m.Text(at, "phys_state"), ": ")
	word, _, _ := strings.Cut(p.Rate, " ")
	p.Gbps, _ = strconv.ParseFloat(word, 64)
	if found := lanes.FindStringSubmatch(p.Rate); found != nil {
		p.Lanes, _ = strconv.Atoi(found[1])
	}
	for _, name := range m.List(at, "gids") {
		index, err := strconv.Atoi(name)
		addr, ok := parseGID(m.Text(at, "gids", name))
		if err != nil || !ok {
			continue
		}
		kind := m.Text(at, "gid_attrs/types", name)
		if !p.IB && kind == "" {
			continue // EINVAL: an empty entry, or one of another network namespace
		}
		p.GIDs = append(p.GIDs, GID{index, addr, strings.HasPrefix(kind, "RoCE v2"), m.Text(at, "gid_attrs/ndevs", name)})
	}
	slices.SortFunc(p.GIDs, func(a, b GID) int { return a.Index - b.Index })
	return p
}

// parseGID reads eight groups of four digits; false: none, or an empty entry.
func parseGID(text string) (netip.Addr, bool) {
	b, err := hex.DecodeString(strings.ReplaceAll(text, ":", ""))
	if err != nil || len(b) != 16 {
		return netip.Addr{}, false
	}
	a := netip.AddrFrom16([16]byte(b))
	return a, !a.IsUnspecified() && !(a.Unmap().IsUnspecified()) && strings.Trim(text, "0:") != "" && !emptyIB(b)
}

// emptyIB is an entry with a prefix and no port.
func emptyIB(b []byte) bool { return slices.Max(b[8:]) == 0 }
