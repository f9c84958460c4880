package doctor

import (
	"fmt"
	"slices"
	"strings"

	"weft/internal/doctor/machine"
	"weft/internal/knob"
	"weft/internal/version"
)

// Schema is the version of the report's form: a field may come, none goes or changes its meaning without a new number.
const Schema = "weft.doctor/1"

// OK is the verdict of a machine on which nothing was found.
const OK Severity = "ok"

// Report is what is known of one host or several.
type Report struct {
	Schema  string    `json:"schema" doc:"weft.doctor/1; a new number where a field goes or changes its meaning"`
	Verdict Severity  `json:"verdict" doc:"ok, advice, slows or breaks: the worst of all hosts"`
	Hosts   []Host    `json:"hosts" doc:"one for each machine"`
	Across  []Finding `json:"across,omitempty" doc:"what is wrong between several hosts"`
	Unasked []string  `json:"unasked,omitempty" doc:"hosts that could not be asked, and why"`
}

// Host is what is known of one.
type Host struct {
	Name       string            `json:"name" doc:"the machine's own name"`
	Boot       string            `json:"boot,omitempty" doc:"the boot of the kernel: containers of one machine have one"`
	Weft       string            `json:"weft" doc:"version of the weft that looked"`
	Verdict    Severity          `json:"verdict" doc:"the worst severity of its findings, or ok"`
	Rules      int               `json:"rules" doc:"how many rules were applied"`
	Findings   []Finding         `json:"findings" doc:"what is wrong, by code"`
	NCCL       []NCCL            `json:"nccl" doc:"libraries of NCCL and RCCL that are installed"`
	Releases   []Row             `json:"releases" doc:"what each release would ask for and find, RCCL's where something of it is installed"`
	Devices    []Device          `json:"devices" doc:"ports of RDMA devices"`
	Interfaces []Interface       `json:"interfaces" doc:"network devices"`
	TCP        string            `json:"tcp" doc:"why TCP uses the interfaces that it uses"`
	Settings   map[string]string `json:"settings,omitempty" doc:"variables of NCCL and weft that are set, in the environment or nccl.conf; secrets are not shown"`
	Answers    []string          `json:"answers,omitempty" doc:"addresses and ports where it answers probes, while it is asked together with others"`
	Paths      []Path            `json:"paths,omitempty" doc:"what passes from it to other hosts that are asked"`
	Unseen     []string          `json:"unseen,omitempty" doc:"what this process may not read: rules that need it say nothing"`
}

// NCCL is an installed library of it.
type NCCL struct {
	Path    string `json:"path" doc:"the file"`
	Version string `json:"version,omitempty" doc:"2.27.7; absent: the file's name does not tell"`
	Owner   string `json:"owner" doc:"who would find it: the loader, or a package of Python"`
}

// Device is a port of an RDMA device.
type Device struct {
	Name   string  `json:"name" doc:"device and port, mlx5_0:1"`
	State  string  `json:"state" doc:"ACTIVE, INIT, DOWN ..."`
	GUID   string  `json:"guid,omitempty" doc:"of the device"`
	Link   string  `json:"link" doc:"InfiniBand or Ethernet"`
	Gbps   float64 `json:"gbps" doc:"speed of the link in Gb/s; 0: not told"`
	PCIe   float64 `json:"pcie_gbps" doc:"what its PCIe link carries, in Gb/s; 0: not told"`
	NUMA   int64   `json:"numa" doc:"node of its processor; -1: not told"`
	NetDev string  `json:"netdev,omitempty" doc:"network device of a RoCE port"`
	MTU    int64   `json:"mtu,omitempty" doc:"of that, in bytes"`
	Used   bool    `json:"used" doc:"whether weft takes it"`
	GID    string  `json:"gid,omitempty" doc:"the GID that weft takes, with its index"`
	Why    string  `json:"why" doc:"why it is used with that GID, or is not"`
}

// Interface is a network device.
type Interface struct {
	Name      string   `json:"name" doc:"the kernel's"`
	Addresses []string `json:"addresses" doc:"with the lengths of their subnets"`
	Up        bool     `json:"up" doc:"up, and with a carrier"`
	MTU       int64    `json:"mtu" doc:"in bytes"`
	Mbps      int64    `json:"mbps" doc:"in Mb/s; 0: not told"`
	Kind      string   `json:"kind,omitempty" doc:"bridge, bond, vlan, veth, tun ...; absent: a card"`
	Used      bool     `json:"used" doc:"whether TCP uses it"`
}

// NewReport puts hosts together.
func NewReport(hosts ...Host) Report {
	r := Report{Schema: Schema, Verdict: OK, Hosts: append([]Host{}, hosts...)}
	for _, h := range hosts {
		r.Verdict = worse(r.Verdict, h.Verdict)
	}
	r.Across = Across(hosts)
	for _, f := range r.Across {
		r.Verdict = worse(r.Verdict, f.Severity)
	}
	return r
}

// Missing is the report without hosts that could not be asked, which is wrong by itself.
func (r Report) Missing(why ...string) Report {
	if r.Unasked = why; len(why) > 0 {
		r.Verdict = Breaks
	}
	return r
}

// Status is the exit status that the verdict has: 0 ok, or advice only; 1 something is wrong.
func (r Report) Status() int {
	if r.Verdict == OK || r.Verdict == Advice {
		return 0
	}
	return 1
}

func worse(a, b Severity) Severity {
	order := []Severity{OK, Advice, Slows, Breaks}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

// Host is all that is known of the machine.
func (x *Exam) Host() Host {
	h := Host{Name: x.Sysctl("kernel/hostname"), Boot: x.Sysctl("kernel/random/boot_id"), Weft: version.String(), Verdict: OK, Rules: ofMachines(), Findings: x.Findings(), Releases: x.Rows()}
	for _, f := range h.Findings {
		h.Verdict = worse(h.Verdict, f.Severity)
	}
	h.NCCL = []NCCL{}
	for _, n := range x.NCCLs() {
		h.NCCL = append(h.NCCL, NCCL{n.Path, n.Version, n.Owner})
	}
	h.Devices, h.Interfaces = x.devices(), []Interface{}
	sockets, why := x.sockets()
	h.TCP = why
	for _, n := range x.NICs() {
		i := Interface{Name: n.Name, Addresses: []string{}, Up: n.Up, MTU: n.MTU, Mbps: n.Mbps, Kind: n.Kind, Used: slices.Contains(sockets, n)}
		for _, a := range n.Addrs {
			i.Addresses = append(i.Addresses, a.String())
		}
		h.Interfaces = append(h.Interfaces, i)
	}
	h.Settings = map[string]string{}
	for name, value := range x.Sets() {
		if !strings.HasPrefix(name, "NCCL_") && !strings.HasPrefix(name, "WEFT_") {
			continue
		}
		if knob.Secret(name) {
			value = "(secret)"
		}
		h.Settings[name] = value
	}
	h.Unseen = x.Unseen()
	return h
}

func (x *Exam) devices() []Device {
	all := []Device{}
	wishes := x.gidWishes()
	for _, p := range x.Ports() {
		d := Device{Name: p.String(), GUID: x.Text(p.Card.Path, "node_guid"), State: p.State, Link: "Ethernet", Gbps: p.Gbps, NUMA: -1}
		if p.IB {
			d.Link = "InfiniBand"
		} else if d.NetDev = p.NetDev(x.Machine); x.NIC(d.NetDev) != nil {
			d.MTU = x.NIC(d.NetDev).MTU
		}
		if p.Card.PCI != nil {
			d.NUMA, d.PCIe = p.Card.PCI.NUMA, p.Card.PCI.Gbps()
		}
		g, why := x.chosen(p, wishes)
		if d.Why = why; g != nil {
			d.Used, d.GID = true, fmt.Sprintf("%v (index %d)", g.Addr.Unmap(), g.Index)
		}
		all = append(all, d)
	}
	return all
}

// chosen is the GID from which a port is used, and why; nil: it is not used.
func (x *Exam) chosen(p *machine.Port, w gidWishes) (g *machine.GID, why string) {
	s, filter := x.hca()
	switch {
	case !p.Active():
		return nil, "the port is " + p.State
	case !taken(filter, p):
		return nil, "NCCL_IB_HCA=" + s.Value + " leaves it out"
	case !slices.Contains(x.used(), p):
		return nil, "NCCL_IB_DISABLE is set"
	}
	best, why, ok := w.choose(p, x.usable(p))
	if !ok {
		return nil, why
	}
	return &best, why
}

// Sentence is the verdict of a host in one line.
func (h Host) Sentence() string {
	by := map[Severity][]string{}
	for _, f := range h.Findings {
		if !slices.Contains(by[f.Severity], f.Code) {
			by[f.Severity] = append(by[f.Severity], f.Code)
		}
	}
	var parts []string
	for _, s := range []struct {
		severity Severity
		says     string
	}{{Breaks, "jobs break by"}, {Slows, "they are slowed by"}, {Advice, "advice:"}} {
		if codes := by[s.severity]; codes != nil {
			parts = append(parts, s.says+" "+strings.Join(codes, ", "))
		}
	}
	name := map[Severity]string{OK: "OK", Advice: "OK", Slows: "SLOW", Breaks: "BROKEN"}[h.Verdict]
	if parts == nil {
		return fmt.Sprintf("%s: %s: none of %d rules finds anything", name, h.Name, h.Rules)
	}
	return fmt.Sprintf("%s: %s: %s (of %d rules)", name, h.Name, strings.Join(parts, "; "), h.Rules)
}
