package info

import (
	"cmp"
	"slices"
	"strings"

	"weft/internal/doctor"
	"weft/internal/doctor/machine"
	"weft/internal/knob"
	weft "weft/transport/verbs/machine"
)

// Device is an RDMA device.
type Device struct {
	Name       string  `json:"name" doc:"the kernel's"`
	Type       string  `json:"type,omitempty" doc:"kind of card, MT4129 (ConnectX-7)"`
	Board      string  `json:"board,omitempty" doc:"its board, as the maker numbers it"`
	Firmware   string  `json:"firmware,omitempty" doc:"of the card"`
	NodeGUID   string  `json:"node_guid" doc:"of this function"`
	SystemGUID string  `json:"system_guid" doc:"of the whole card"`
	PCI        string  `json:"pci,omitempty" doc:"address of the function; absent: software"`
	NUMA       int64   `json:"numa" doc:"node of its processor; -1: not told"`
	Link       string  `json:"pcie,omitempty" doc:"its PCIe link as it runs, 32 GT/s x16"`
	Ports      []*Port `json:"ports" doc:"of this function"`
}

// Port is one of a device's.
type Port struct {
	Name   string  `json:"name" doc:"device and port, mlx5_0:1"`
	Number int     `json:"number" doc:"on the device, from 1"`
	State  string  `json:"state" doc:"ACTIVE, INIT, DOWN ..."`
	Phys   string  `json:"phys_state" doc:"LinkUp, Polling, Disabled ..."`
	Link   string  `json:"link" doc:"InfiniBand or Ethernet"`
	Rate   string  `json:"rate" doc:"as the kernel says it, 400 Gb/sec (4X NDR)"`
	Gbps   float64 `json:"gbps" doc:"in Gb/s; 0: not told"`
	LID    string  `json:"lid,omitempty" doc:"of a port of InfiniBand"`
	NetDev string  `json:"netdev,omitempty" doc:"network device of a RoCE port"`
	MTU    int64   `json:"mtu,omitempty" doc:"of that, in bytes"`
	Index  *int    `json:"index,omitempty" doc:"place in the list of devices that NCCL sees, before it fuses any; absent: weft does not use the port"`
	Why    string  `json:"why" doc:"why it is used from the chosen GID, or is not"`
	GIDs   []GID   `json:"gids" doc:"entries of its table that are not empty"`
}

// GID is an entry of a port's table.
type GID struct {
	Index   int    `json:"index" doc:"in the table"`
	Type    string `json:"type" doc:"IB, RoCE v1 or RoCE v2"`
	Address string `json:"address" doc:"as IP has it"`
	NetDev  string `json:"netdev,omitempty" doc:"network device behind it; absent: InfiniBand, or not in this network namespace"`
	Usable  bool   `json:"usable" doc:"whether weft could take it"`
	Chosen  bool   `json:"chosen" doc:"whether weft takes it"`
}

func devices(x *doctor.Exam) []Device {
	all := []Device{}
	for _, c := range x.Cards() {
		d := Device{Name: c.Name, Type: kind(x.Text(c.Path, "hca_type")), Board: c.Board, Firmware: c.Firmware,
			NodeGUID: x.Text(c.Path, "node_guid"), SystemGUID: c.SystemGUID, NUMA: -1, Ports: []*Port{}}
		if f := c.PCI; f != nil {
			d.PCI, d.NUMA, d.Link = f.Address, f.NUMA, pcie(f)
		}
		for _, p := range c.Ports {
			d.Ports = append(d.Ports, port(x, p))
		}
		all = append(all, d)
	}
	return all
}

func port(x *doctor.Exam, p *machine.Port) *Port {
	all := &Port{Name: p.String(), Number: p.Number, State: p.State, Phys: p.Phys, Link: "Ethernet", Rate: p.Rate, Gbps: p.Gbps, GIDs: []GID{}}
	if p.IB {
		all.Link, all.LID = "InfiniBand", x.Text(p.Path, "lid")
	} else if all.NetDev = p.NetDev(x.Machine); x.NIC(all.NetDev) != nil {
		all.MTU = x.NIC(all.NetDev).MTU
	}
	chosen, why := x.Chosen(p)
	all.Why = why
	usable := x.Usable(p)
	for _, g := range p.GIDs {
		of := GID{Index: g.Index, Type: "RoCE v1", Address: g.Addr.Unmap().String(), NetDev: g.NetDev, Usable: slices.Contains(usable, g)}
		switch {
		case p.IB:
			of.Type = "IB"
		case g.V2:
			of.Type = "RoCE v2"
		}
		of.Chosen = chosen != nil && chosen.Index == g.Index
		all.GIDs = append(all.GIDs, of)
	}
	return all
}

// makers are the names under which cards are sold, by the type that their driver tells.
var makers = map[string]string{
	"MT4115": "ConnectX-4", "MT4117": "ConnectX-4 Lx", "MT4119": "ConnectX-5", "MT4121": "ConnectX-5 Ex", "MT4123": "ConnectX-6", "MT4125": "ConnectX-6 Dx",
	"MT4127": "ConnectX-6 Lx", "MT4129": "ConnectX-7", "MT4131": "ConnectX-8", "MT41686": "BlueField-2", "MT41692": "BlueField-3",
}

func kind(text string) string {
	if name := makers[text]; name != "" {
		return text + " (" + name + ")"
	}
	return text
}

// list is the ports that weft uses in the order in which NCCL sees them, and which of them it makes one device of.
func list(x *doctor.Exam) (order []*machine.Port, fused []string) {
	for _, p := range x.Ports() {
		if g, _ := x.Chosen(p); g != nil {
			order = append(order, p)
		}
	}
	if x.Knobs().Int(knob.IBPCIOrder) != 0 {
		slices.SortStableFunc(order, func(a, b *machine.Port) int {
			return cmp.Compare(weft.PCINumber(address(a)), weft.PCINumber(address(b)))
		})
	}
	if x.Knobs().Int(knob.IBMergeNICs) == 0 {
		return order, nil
	}
	slots := map[string][]string{}
	var names []string
	for _, p := range order {
		if p.Card.PCI == nil {
			continue
		}
		slot := weft.MergePCI(p.Card.PCI.Path, x.Knobs().Int(knob.IBMergeVFs) != 0)
		if slots[slot] == nil {
			names = append(names, slot)
		}
		slots[slot] = append(slots[slot], p.String())
	}
	for _, slot := range names {
		if len(slots[slot]) > 1 {
			fused = append(fused, strings.Join(slots[slot], "+"))
		}
	}
	return order, fused
}

func address(p *machine.Port) string {
	if p.Card.PCI == nil {
		return ""
	}
	return p.Card.PCI.Path
}
