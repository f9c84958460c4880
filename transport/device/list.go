package device

import (
	"slices"
	"strings"
	"sync"
	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/memory"
	"weft/transport/rdma"
	"weft/transport/verbs/port"
	"weft/transport/wire"
)

// maxFused is how many fused devices there may be, as in NCCL.
const maxFused = 256

// List is the host's list of devices: those of the machine, and at its end those
// that the host has made of several.
type List struct {
	found []*Device
	knobs *knob.Values
	log   report.Logger

	mu    sync.RWMutex
	fused []*Device // protected by mu
}

// NewList is the list of a machine's devices.
func NewList(found []*Device, k *knob.Values, log report.Logger) *List {
	return &List{found: found, knobs: k, log: log}
}

// Found are the devices of the machine.
func (l *List) Found() []*Device { return l.found }

// all are the devices in NCCL's order, fused ones at the end.
func (l *List) all() []*Device {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Concat(l.found, l.fused)
}

// Get is the device of an index, for a call op of the host.
func (l *List) Get(op string, dev int) (*Device, error) {
	all := l.all()
	if dev < 0 || dev >= len(all) {
		return nil, report.Errorf(report.Misuse, op, "device %d of %d", dev, len(all))
	}
	return all[dev], nil
}

// Port is the port behind an index of the inventory; nil: none.
func (l *List) Port(index uint16) *port.Device {
	if int(index) >= len(l.found) {
		return nil
	}
	return l.found[index].Verbs
}

// Fuse makes one device of several and returns it. Its connections run over all
// of them; its index follows those of the devices there are.
func (l *List) Fuse(members []int) (*Device, error) {
	refuse := func(format string, a ...any) error { return report.Errorf(report.Usage, "makeVDevice", format, a...) }
	if len(members) < 1 || len(members) > wire.MaxSlots {
		return nil, refuse("%d devices in one, legal are 1 to %d", len(members), wire.MaxSlots)
	}
	if len(members) > 1 && l.knobs.Int(knob.IBMergeNICs) == 0 {
		return nil, l.apart("NCCL_IB_MERGE_NICS=0")
	}
	var parts []*Device
	for i, n := range members {
		switch {
		case n < 0 || n >= len(l.found):
			return nil, refuse("device %d of %d that can be fused", n, len(l.found))
		case slices.Contains(members[:i], n):
			return nil, refuse("%s twice in one device", l.found[n].Name)
		}
		d := l.found[n]
		for _, o := range parts {
			if d.Verbs != nil && o.Verbs != nil && d.Verbs.SamePort(o.Verbs) {
				return nil, refuse("%s and %s are one port, which is no faster twice", o.Name, d.Name)
			}
		}
		parts = append(parts, d)
	}
	for _, d := range parts[1:] {
		if a, b := parts[0].link(), d.link(); a != b {
			return nil, refuse("%s is %s, %s is %s: only devices of one kind can be one", parts[0].Name, a, d.Name, b)
		}
	}
	for _, d := range parts {
		// NCCL 2.30.7 finds no path to a device made of such interfaces, and its init ends: "Could not find any local path from gpu
		// 0 to net". RDMA devices stay allowed, for a topology file may name them.
		if len(parts) > 1 && d.Verbs == nil && d.PCIPath == "" {
			return nil, l.apart("%s has no PCI address, and NCCL finds no path from a GPU to a device made of such", d.Name)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.fused) == maxFused {
		return nil, refuse("there are %d fused devices already", maxFused)
	}
	d := fuse(parts)
	d.Index = len(l.found) + len(l.fused)
	for slices.ContainsFunc(l.fused, func(o *Device) bool { return o.Name == d.Name }) {
		d.Name += "'" // NCCL's topology tells devices by their names
	}
	l.fused = append(l.fused, d)
	if len(parts) > 1 { // NCCL 2.24 to 2.26 has every device made once more, which takes the place of the first by its name
		l.log.Info(report.Net, "device %d is %s: %d devices in one, %d Mb/s", d.Index, d.Name, len(parts), d.SpeedMbps)
	}
	return d, nil
}

// apart says why devices stay what they are, which is no warning; NCCL may ask for each pair of them.
func (l *List) apart(format string, a ...any) error {
	err := report.Errorf(report.Usage, "makeVDevice", format, a...).Try("NCCL uses the devices one by one then")
	l.log.Info(report.Net, "%v", err)
	return err.Told()
}

// Unfuse forgets the fused devices, for a host that starts anew and counts
// devices from the beginning; false when one of them has comms, or is in use
// otherwise, as used says.
func (l *List) Unfuse(used func(*Device) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.fused {
		if d.Ports.Busy() || used(d) {
			return false
		}
	}
	l.fused = nil
	return true
}

// fuse describes the device that parts make.
func fuse(parts []*Device) *Device {
	first := parts[0]
	d := &Device{Device: first.Device, TCP: first.TCP, Verbs: first.Verbs, members: parts}
	d.SpeedMbps = 0
	var names []string
	var own []memory.Port
	for _, p := range parts {
		names = append(names, p.Name)
		d.SpeedMbps += p.SpeedMbps
		d.Pointers &= p.Pointers
		d.Flush = d.Flush || p.Flush
		d.MTU = min(d.MTU, p.MTU)
		d.MaxComms = min(d.MaxComms, p.MaxComms)
		d.Latency = max(d.Latency, p.Latency)
		if p.RailID != d.RailID {
			d.RailID = rdma.NoID
		}
		if p.PlaneID != d.PlaneID {
			d.PlaneID = rdma.NoID
		}
		if p.Verbs != nil {
			own = append(own, p.Verbs)
		}
	}
	d.Ports = memory.NewPorts(own...)
	d.Name = strings.Join(names, "+")
	return d
}
