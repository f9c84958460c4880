package plugin

import (
	"weft/abi"
	"weft/transport"
	"weft/transport/rdma"
)

// MakeVDevice makes one device of several; devices() counts it from then on.
func (p *process) MakeVDevice(a *abi.NetMakeVDeviceArgs) error {
	if a.D == nil {
		return null("makeVDevice", "d")
	}
	if a.Props == nil {
		return null("makeVDevice", "props")
	}
	e, err := p.current("makeVDevice")
	if err != nil {
		return err
	}
	// Of an older table's list no more is left than its struct has places.
	n := min(int(a.Props.Ndevs), len(a.Props.Devs))
	switch {
	case a.Asked < 1:
		return rdma.Errorf(rdma.Usage, "makeVDevice", "a device made of %d", a.Asked)
	case int(a.Asked) > n:
		return rdma.Errorf(rdma.Usage, "makeVDevice", "%d devices in one, this release's table takes at most %d", a.Asked, n)
	}
	members := make([]int, n)
	for i := range members {
		members[i] = int(a.Props.Devs[i])
	}
	p.state.Lock()
	defer p.state.Unlock()
	d, err := e.Fuse(members)
	if err != nil {
		return err
	}
	p.state.devs, p.state.anew = append(p.state.devs, p.describe(d)), false
	*a.D = int32(d.Index)
	return nil
}

// describe makes the strings of a device. Hosts keep pointers to them, so they
// are never freed, and one text is made once. state is held.
func (p *process) describe(d *transport.Device) deviceStrings {
	keep := func(text string) *byte {
		if p.state.strings[text] == nil {
			p.state.strings[text] = p.host.CString(text)
		}
		return p.state.strings[text]
	}
	s := deviceStrings{Device: d, name: keep(d.Name)}
	if d.PCIPath != "" {
		s.path = keep(d.PCIPath)
	}
	return s
}

// startOver forgets fused devices when a host counts devices anew: NCCL asks
// once after it has loaded the library, which it believes new even if it never
// went away, and again when it has fused. It has loaded it when an init finds no
// communicator of its own, or calls a table whose init serves all of them. Devices
// that are in use stay.
func (p *process) startOver() {
	if !p.state.anew || p.state.open == nil {
		return
	}
	p.state.anew = false
	if p.state.open.Unfuse() {
		p.state.devs = p.state.devs[:p.state.found]
	}
}
