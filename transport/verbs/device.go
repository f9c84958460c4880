package verbs

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/rdma"
	"weft/transport/verbs/gid"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/machine"
)

// Device is one port that carries RDMA. What the tables report stands in
// rdma.Device and never changes; GIDs and the port's state do.
//
// Addrs are the addresses behind the port's GIDs, best first, and may be empty
// on InfiniBand. Name is the library's, with ":port" for further ports of one
// card, and "_dma" for a card's data-direct path to GPU memory.
type Device struct {
	rdma.Device
	InfiniBand bool   // else Ethernet
	NIC        string // the library's name, as NCCL_IB_HCA and peers' messages use it
	Firmware   string

	provider *Provider
	adapter  *adapter
	portNum  uint8  // on its card, from 1
	function string // real path of the PCI function
	direct   bool   // it stands for its card's data-direct path to GPU memory
	gidWhy   string // why the first GID was the best at discovery

	now *portState // which both views of a port share
}

// portState is what changes about a port. An event may come while another goroutine
// asks the card: so every question and event has a number, and what an earlier one
// says does not replace what a later one said.
type portState struct {
	sync.Mutex
	gids   []gid.GID    // protected, as all below; usable, best first, never empty
	port   ibv.PortAttr // asked with gids
	down   string       // why the port cannot be used at the moment, "" while it can
	number uint64       // of the last question or event
	gidsOf uint64       // the one that gids are of
	downOf uint64       // the one that down is of
}

// asks numbers a question about a port, or an event of it.
func (d *Device) asks() uint64 {
	d.now.Lock()
	defer d.now.Unlock()
	d.now.number++
	return d.now.number
}

// GIDs are the usable GIDs, best first.
func (d *Device) GIDs() []gid.GID {
	d.now.Lock()
	defer d.now.Unlock()
	return slices.Clone(d.now.gids)
}

// Down says why the port cannot be used at the moment, "" while it can.
func (d *Device) Down() string {
	if why := d.adapter.outage.why(); why != "" {
		return why
	}
	d.now.Lock()
	defer d.now.Unlock()
	return d.now.down
}

// PathMTU is the port's active MTU in bytes.
func (d *Device) PathMTU() int {
	d.now.Lock()
	defer d.now.Unlock()
	return MTUBytes(d.now.port.ActiveMTU)
}

// MaxMessage is the longest work request that the port carries.
func (d *Device) MaxMessage() uint32 {
	d.now.Lock()
	defer d.now.Unlock()
	return d.now.port.MaxMessage
}

// MTUBytes translates enum ibv_mtu; a value from a peer may be anything, and what is none is 0.
func MTUBytes(code uint8) int {
	if code < 1 || code > 5 {
		return 0
	}
	return 128 << code
}

// discover opens the devices and lists their usable ports.
func (p *Provider) discover() error {
	filter, problems := parseHCA(p.knobs.Text(knob.IBHCA))
	for _, line := range problems {
		p.log.Warn("%s", line)
	}
	links, err := p.host.Links()
	if err != nil {
		return err
	}
	list, entries, errno := p.lib.GetDeviceList()
	if errno == syscall.ENOSYS {
		return none("the kernel shows %s no RDMA (ib_uverbs is not loaded)", p.library)
	}
	if errno != 0 {
		return fmt.Errorf("%w (%w)", fail("ibv_get_device_list", "", errno, "%s", p.library), ErrNone)
	}
	defer p.lib.FreeDeviceList(list)
	var passed []string // why each device or port is not used
	filtered := false   // NCCL_IB_HCA is a reason
	for i := range entries {
		e := &entries[i]
		if e.Transport != ibv.TransportIB {
			passed = append(passed, e.Name+" (neither InfiniBand nor RoCE)")
			continue
		}
		a, err := p.openAdapter(e)
		if err != nil {
			report.Say(p.log, err)
			passed = append(passed, e.Name+" (cannot be opened)")
			continue
		}
		used := 0
		for port := uint8(1); port <= a.attr.Ports && port != 0; port++ {
			d, why := p.port(a, port, filter, links)
			if d == nil {
				passed = append(passed, fmt.Sprintf("%s:%d (%s)", e.Name, port, why))
				filtered = filtered || why == leftOut
				continue
			}
			if used++; used > 1 {
				d.Name = fmt.Sprintf("%s:%d", e.Name, port)
			}
			p.devices = append(p.devices, d.views(p.knobs.Int(knob.IBDataDirect) == 2)...)
		}
		if used == 0 {
			a.close()
			continue
		}
		p.adapters = append(p.adapters, a)
	}
	if len(p.devices) == 0 {
		if wanted := len(filter.entries) > 0 && !filter.exclude; wanted && filtered {
			p.log.Warn("NCCL_IB_HCA=%s names no RDMA port that can be used here: %s", p.knobs.Text(knob.IBHCA), strings.Join(cut(passed), ", "))
		}
		return p.nothing(passed)
	}
	p.arrange()
	p.announce(passed)
	for _, a := range p.adapters { // from here on events change devices
		if err := a.startReading(); err != nil {
			report.Say(p.log, err)
		}
	}
	return nil
}

const leftOut = "NCCL_IB_HCA leaves it out"

// port describes one port, or says why it is not used.
func (p *Provider) port(a *adapter, port uint8, filter hcaFilter, links []machine.Link) (*Device, string) {
	attr, errno := p.lib.QueryPort(a.context, port)
	if errno != 0 {
		report.Say(p.log, fail("ibv_query_port", a.name, errno, "port %d", port))
		return nil, "cannot be queried"
	}
	if attr.State != ibv.PortActive {
		return nil, "not active"
	}
	if attr.LinkLayer != ibv.LinkInfiniBand && attr.LinkLayer != ibv.LinkEthernet {
		return nil, "unknown link layer"
	}
	rail, plane, ok := filter.takes(a.name, int(port))
	if !ok {
		return nil, leftOut
	}
	gids, why, err := p.chooseGID(a, port, &attr, links)
	if err != nil {
		report.Say(p.log, err)
		return nil, "no usable GID"
	}
	if _, _, err := p.partition(a, port, &attr); err != nil {
		report.Say(p.log, err)
		return nil, "not in the partition"
	}
	d := &Device{
		Device: rdma.Device{
			Name: a.name, GUID: a.attr.SystemGUID, SpeedMbps: p.speed(a, port, &attr), MaxComms: a.attr.MaxQP, MaxRecvs: rdma.MaxRecvs,
			MTU: MTUBytes(attr.ActiveMTU), RailID: rail, PlaneID: plane,
		},
		InfiniBand: attr.LinkLayer == ibv.LinkInfiniBand, NIC: a.name, Firmware: a.attr.Firmware,
		provider: p, adapter: a, portNum: port, gidWhy: why,
	}
	d.function, d.PCIPath = p.host.PCIPaths(a.sysfs, p.knobs.Int(knob.IBMergeVFs) != 0)
	d.now = &portState{gids: gids, port: attr}
	if !d.InfiniBand {
		d.addresses(gids, links)
	}
	return d, ""
}

// addresses are what the port's GIDs stand for in IP's terms.
func (d *Device) addresses(gids []gid.GID, links []machine.Link) {
	for _, l := range links {
		if l.Name == gids[0].NetDev {
			d.IfIndex = l.Index
		}
	}
	for _, g := range gids {
		if p := gid.PrefixOf(g); !slices.Contains(d.Addrs, p) {
			d.Addrs = append(d.Addrs, p)
		}
	}
}

func (p *Provider) speed(a *adapter, port uint8, attr *ibv.PortAttr) int {
	if p.knobs.Int(knob.IBQueryPortSpeed) != 0 && !p.lib.Lacks["ibv_query_port_speed"] {
		speed, errno := p.lib.QueryPortSpeed(a.context, port)
		if errno == 0 && speed > 0 {
			return int(speed) * 100
		}
		if errno != 0 && !unsupported(errno) {
			p.log.Info(report.Net, "%v", fail("ibv_query_port_speed", a.name, errno, "port %d is taken for as fast as its lanes", port))
		}
	}
	return tableSpeed(attr)
}

// arrange puts the devices into their final order and completes what depends
// on it or on a protection domain.
func (p *Provider) arrange() {
	if p.knobs.Int(knob.IBPCIOrder) != 0 {
		orderByPCI(p.devices)
	}
	numberPorts(p.devices)
	p.gdr = p.host.GDR()
	for i, d := range p.devices {
		d.Index = i
		d.Pointers = d.pointers()
	}
}

// announce says in one line what is used and what is not, and in one line each
// what the devices are.
func (p *Provider) announce(passed []string) {
	var names []string
	for _, d := range p.devices {
		names = append(names, fmt.Sprintf("[%d]%s:%d%s/%s", d.Index, d.NIC, d.portNum, map[bool]string{true: "_dma"}[d.direct], d.link()))
	}
	without := ""
	if len(passed) > 0 {
		without = "; not " + strings.Join(cut(passed), ", ")
	}
	p.log.Info(report.Init, "RDMA through %s on %s%s", p.library, strings.Join(cut(names), " "), without)
	for _, d := range p.devices {
		p.log.Info(report.Init, "%s", d.describe())
	}
}

func (d *Device) link() string { return map[bool]string{true: "IB", false: "RoCE"}[d.InfiniBand] }

// describe is the device's line in the log of init.
func (d *Device) describe() string {
	rail := ""
	if d.RailID != rdma.NoID || d.PlaneID != rdma.NoID {
		rail = fmt.Sprintf(", rail %d, plane %d", d.RailID, d.PlaneID)
	}
	pci := "without PCI address"
	if d.function != "" {
		pci = "PCI " + filepath.Base(d.function)
	}
	if d.direct {
		pci += " and " + filepath.Base(d.PCIPath) + " (data-direct)"
	}
	name := d.NIC
	if d.direct {
		name = d.Name + ", " + name
	}
	_, gpu := d.GPUMemory()
	return fmt.Sprintf("device %d is %s port %d: %s, %d Mb/s, MTU %d, %s%s, firmware %q, %d queue pairs; GID %v: %s; memory %v: %s%s",
		d.Index, name, d.portNum, d.link(), d.SpeedMbps, d.PathMTU(), pci, rail, d.Firmware, d.MaxComms, d.GIDs()[0], d.gidWhy, d.Pointers, gpu, d.adapter.describeOrder())
}

// nothing explains an empty list.
func (p *Provider) nothing(passed []string) error {
	if len(passed) == 0 {
		return none("%s shows no RDMA device", p.library)
	}
	return none("no RDMA device can be used: %s", strings.Join(cut(passed), ", "))
}

// cut bounds a list: NCCL's log ends a line at 1024 bytes.
func cut(list []string) []string {
	const most = 12
	if n := len(list) - most; n > 0 {
		return append(slices.Clone(list[:most]), fmt.Sprintf("and %d more", n))
	}
	return list
}

// IsNone reports an error of Open that only means: no RDMA here.
func IsNone(err error) bool { return errors.Is(err, ErrNone) }
