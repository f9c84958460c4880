package transport

import (
	"slices"
	"strings"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/rdma"
	"weft/transport/tcp"
	"weft/transport/wire"
)

// maxFused is how many fused devices there may be, as in NCCL.
const maxFused = 256

// Fuse makes one device of several and answers it. Its connections run over all
// of them; its index follows those of the devices there are.
func (c *Core) Fuse(members []int) (*Device, error) {
	refuse := func(format string, a ...any) error { return report.Errorf(report.Usage, "makeVDevice", format, a...) }
	if len(members) < 1 || len(members) > wire.MaxSlots {
		return nil, refuse("%d devices in one, legal are 1 to %d", len(members), wire.MaxSlots)
	}
	if len(members) > 1 && c.cfg.Knobs.Int(knob.IBMergeNICs) == 0 {
		err := report.Errorf(report.Usage, "makeVDevice", "NCCL_IB_MERGE_NICS=0").Try("NCCL uses the devices one by one then")
		c.cfg.Log.Info(report.Net, "%v", err) // what the user asked for is no warning, and NCCL asks for each pair of ports
		return nil, err.Told()
	}
	var parts []*Device
	for i, n := range members {
		switch {
		case n < 0 || n >= len(c.cfg.Devices):
			return nil, refuse("device %d of %d that can be fused", n, len(c.cfg.Devices))
		case slices.Contains(members[:i], n):
			return nil, refuse("%s twice in one device", c.cfg.Devices[n].Name)
		}
		d := c.cfg.Devices[n]
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
	c.fused.Lock()
	defer c.fused.Unlock()
	if len(c.fused.all) == maxFused {
		return nil, refuse("there are %d fused devices already", maxFused)
	}
	d := fuse(parts)
	d.Index = len(c.cfg.Devices) + len(c.fused.all)
	for slices.ContainsFunc(c.fused.all, func(o *Device) bool { return o.Name == d.Name }) {
		d.Name += "'" // NCCL's topology tells devices by their names
	}
	c.fused.all = append(c.fused.all, d)
	if len(parts) > 1 { // NCCL 2.24 to 2.26 has every device made anew, which takes the place of the first by its name
		c.cfg.Log.Info(report.Net, "device %d is %s: %d devices in one, %d Mb/s", d.Index, d.Name, len(parts), d.SpeedMbps)
	}
	return d, nil
}

// Unfuse forgets the fused devices, for a host that starts anew and counts
// devices from the beginning; false when one of them is in use.
func (c *Core) Unfuse() bool {
	c.fused.Lock()
	defer c.fused.Unlock()
	for _, d := range c.fused.all {
		if d.busy() || c.asked(d) {
			return false
		}
	}
	c.fused.all = nil
	return true
}

// asked reports whether a listen or a connect of any context is on d.
func (c *Core) asked(d *Device) bool {
	c.contexts.Lock()
	defer c.contexts.Unlock()
	for x := range c.contexts.all {
		if x.asks(d) {
			return true
		}
	}
	return false
}

func (x *Context) asks(d *Device) bool {
	x.owned.Lock()
	defer x.owned.Unlock()
	for l := range x.owned.listeners {
		if l.dev == d {
			return true
		}
	}
	for _, k := range x.owned.connectors {
		if k.dev == d {
			return true
		}
	}
	return false
}

// fuse describes the device that parts make.
func fuse(parts []*Device) *Device {
	first := parts[0]
	d := &Device{Device: first.Device, TCP: first.TCP, Verbs: first.Verbs, members: parts}
	d.SpeedMbps = 0
	var names []string
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
			d.ports.slots = append(d.ports.slots, slot{port: p.Verbs})
		}
	}
	d.Name = strings.Join(names, "+")
	return d
}

// parts are the devices that d is made of, at least itself.
func (d *Device) parts() []*Device {
	if d.members == nil {
		return []*Device{d}
	}
	return d.members
}

// Members are the indices of the devices that d is made of, at least its own.
func (d *Device) Members() (all []int) {
	for _, p := range d.parts() {
		all = append(all, p.Index)
	}
	return all
}

// indices are Members as the wire has them.
func (d *Device) indices() (all []uint16) {
	for _, i := range d.Members() {
		all = append(all, uint16(i))
	}
	return all
}

// outOfUse says which of d's own ports cannot be used at the moment, and why.
func (d *Device) outOfUse() (all []string) {
	for _, p := range d.parts() {
		if p.Verbs == nil {
			continue
		}
		if why := p.Verbs.Down(); why != "" {
			all = append(all, p.Verbs.Name+": "+why)
		}
	}
	return all
}

// link is what a device's connections travel on.
func (d *Device) link() string {
	switch {
	case d.Verbs == nil:
		return "TCP"
	case d.Verbs.InfiniBand:
		return "InfiniBand"
	}
	return "RoCE"
}

// interfaces are what d's TCP runs on.
func (d *Device) interfaces() (all []*tcp.Device) {
	for _, p := range d.parts() {
		if !slices.Contains(all, p.TCP) {
			all = append(all, p.TCP)
		}
	}
	return all
}

// streams is how many streams a connection to a listen on d gets.
func (d *Device) streams() int {
	n := 0
	for _, i := range d.interfaces() {
		n += max(1, i.Streams)
	}
	return min(n, wire.MaxStreams)
}

// busy reports whether there are comms of d.
func (d *Device) busy() bool {
	d.ports.mu.Lock()
	defer d.ports.mu.Unlock()
	return len(d.ports.comms) > 0
}
