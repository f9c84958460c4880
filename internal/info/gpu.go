package info

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weft/internal/doctor"
	"weft/internal/doctor/machine"
)

// GPU is one of the machine's.
type GPU struct {
	Index   int    `json:"index" doc:"by PCI address, as NVML counts them"`
	PCI     string `json:"pci" doc:"address of its function"`
	NUMA    int64  `json:"numa" doc:"node of its processor; -1: not told"`
	Driver  string `json:"driver,omitempty" doc:"that has it; absent: none"`
	Link    string `json:"pcie,omitempty" doc:"its PCIe link as it runs, 32 GT/s x16"`
	Nearest []Way  `json:"nearest" doc:"the devices that NCCL uses for it: the widest way, among these the shortest; several share the channels"`
	Why     string `json:"why" doc:"why these"`
	Direct  bool   `json:"gpu_direct" doc:"whether they reach its memory by themselves (GPUDirect RDMA), as far as files tell"`
	Reason  string `json:"gpu_direct_why" doc:"how, or why not"`
	Ways    []Way  `json:"ways" doc:"to every device that weft uses"`
}

// Way is the one from a GPU to a device.
type Way struct {
	Device   string   `json:"device" doc:"a port of RDMA, mlx5_0:1, or an interface"`
	Distance Distance `json:"distance" doc:"PIX: one PCIe switch joins them; PXB: several; PHB: the processor; SYS: two processors"`
	GBps     float64  `json:"gbytes" doc:"the narrowest part of it in GB/s, as NCCL counts; over two processors at most this"`

	why  string
	wide float64  // without the link between processors
	as   Distance // as NCCL chooses: what the device does not reach by itself goes through the processor
}

// nic is a device of weft's as a GPU sees it.
type nic struct {
	name string
	at   *machine.Function // nil: none
	wide float64           // GB/s of its network
}

// untoldNetwork is what NCCL takes a network for that does not tell its speed, in GB/s.
const untoldNetwork = 1.25

// nics are the devices that NCCL gets: ports of RDMA if there are any, else interfaces.
func nics(x *doctor.Exam, order []*machine.Port) (all []nic) {
	for _, p := range order {
		all = append(all, nic{p.String(), p.Card.PCI, p.Gbps / 8})
	}
	if all != nil {
		return all
	}
	used, _ := x.Sockets()
	for _, n := range used {
		all = append(all, nic{n.Name, n.PCI, float64(n.Mbps) / 8000})
	}
	return all
}

func gpus(x *doctor.Exam, order []*machine.Port) []GPU {
	all := []GPU{}
	devices := nics(x, order)
	for i, f := range x.GPUs() {
		g := GPU{Index: i, PCI: f.Address, NUMA: f.NUMA, Driver: f.Driver, Link: pcie(f), Nearest: []Way{}, Ways: []Way{}}
		for _, n := range devices {
			g.Ways = append(g.Ways, way(x, f, n))
		}
		d := directOf(x, len(order) > 0)
		for i := range g.Ways {
			g.Ways[i].detour(d)
		}
		g.choose()
		g.direct(d)
		all = append(all, g)
	}
	return all
}

// way measures the one from a GPU to a device. What has no PCI function NCCL puts to the first processor.
func way(x *doctor.Exam, f *machine.Function, n nic) Way {
	a, b, wide := placeOf(x.Machine, f), place{numa: x.GPUs()[0].NUMA}, linkWidth(x.Machine, f.Path)
	if n.at != nil {
		b = placeOf(x.Machine, n.at)
		wide = min(wide, linkWidth(x.Machine, n.at.Path))
	}
	if n.wide <= 0 {
		n.wide = untoldNetwork
	}
	wide = min(wide, n.wide)
	d, via, why := between(a, b)
	if n.at == nil {
		why = "the device has no PCI address, and NCCL puts it to the first processor"
	}
	for _, s := range via {
		wide = min(wide, linkWidth(x.Machine, s))
	}
	w := Way{Device: n.name, Distance: d, GBps: wide, why: why, wide: wide, as: d}
	if d == SYS {
		w.GBps = min(wide, wideSockets)
	}
	return w
}

// best are the widest ways, among these the shortest, if processors are joined so widely: NCCL's choice.
func best(ways []Way, sockets float64) (all []Way) {
	width := func(w Way) float64 {
		if w.Distance == SYS {
			return min(w.wide, sockets)
		}
		return w.wide
	}
	better := func(a, b Way) int { return cmp.Or(cmp.Compare(width(b), width(a)), a.as.far()-b.as.far()) }
	if len(ways) == 0 {
		return nil
	}
	first := slices.MinFunc(ways, better)
	for _, w := range ways {
		if better(w, first) == 0 {
			all = append(all, w)
		}
	}
	return all
}

func (g *GPU) choose() {
	narrow, wide := best(g.Ways, narrowSockets), best(g.Ways, wideSockets)
	if narrow == nil {
		g.Why = "there is no device"
		return
	}
	g.Nearest, g.Why = narrow, narrow[0].why
	if near := nearer(g.Ways, narrow); near != nil {
		g.Why += fmt.Sprintf("; %s is nearer (%s) and narrower", near.Device, near.Distance)
	}
	if len(narrow) > 1 {
		g.Why += "; NCCL shares channels and GPUs out among them"
	}
	if names(narrow) != names(wide) {
		g.Why += fmt.Sprintf("; %s where NCCL takes the link between the processors for wide enough", names(wide))
	}
}

// nearer is a way that was not chosen and is shorter than one that was.
func nearer(ways, chosen []Way) *Way {
	for i, w := range ways {
		if w.as.far() < chosen[0].as.far() && !slices.Contains(chosen, w) {
			return &ways[i]
		}
	}
	return nil
}

func names(ways []Way) string {
	var all []string
	for _, w := range ways {
		all = append(all, w.Device)
	}
	return listed(all)
}

func listed(names []string) string {
	if names == nil {
		return "none"
	}
	return strings.Join(names, ", ")
}

// direct is how devices reach the memory of GPUs by themselves, and from how far.
type direct struct {
	how   string // or why they do not
	so    bool
	level Distance // the farthest
	set   bool     // by NCCL_NET_GDR_LEVEL
}

func directOf(x *doctor.Exam, rdma bool) (d direct) {
	d.how, d.so = "TCP copies through host memory", false
	if rdma {
		d.how, d.so = x.GPUMemory()
	}
	d.level, d.set = gdrLevel(x)
	return d
}

// over reports a way that is short enough.
func (d direct) over(w Way) bool { return d.so && w.Distance.far() <= d.level.far() }

// detour leads a way through the processor where the device does not reach the GPU's memory by itself.
func (w *Way) detour(d direct) {
	if !d.over(*w) && w.as.far() < PHB.far() {
		w.as = PHB
	}
}

// direct says whether its devices reach its memory.
func (g *GPU) direct(d direct) {
	switch {
	case len(g.Nearest) == 0:
		g.Reason = "there is no device"
	case d.over(g.Nearest[0]):
		g.Direct, g.Reason = true, d.how
	case !d.so:
		g.Reason = d.how
	case d.set:
		g.Reason = fmt.Sprintf("%s is farther than NCCL_NET_GDR_LEVEL=%s", g.Nearest[0].Distance, d.level)
	default:
		g.Reason = fmt.Sprintf("%s is farther than %s, NCCL's limit by default (where C2C joins GPU and processor, %s is near enough); NCCL_NET_GDR_LEVEL sets it", g.Nearest[0].Distance, d.level, PHB)
	}
}

// gdrLevel is the farthest distance at which NCCL has a device reach a GPU's memory: a name, or a number of the old kind.
func gdrLevel(x *doctor.Exam) (level Distance, set bool) {
	text := x.Set("NCCL_NET_GDR_LEVEL").Value
	if d := Distance(text); d.far() >= 0 {
		return d, true
	}
	if n, err := strconv.ParseUint(text, 0, 31); err == nil {
		return distances[min(n, uint64(len(distances)-1))], true
	}
	return PXB, false
}
