package plugin

import (
	"slices"

	"weft/abi"
	"weft/internal/report"
	"weft/transport/device"
)

// MakeVDevice makes one device of several; devices() counts it from then on.
// Where they cannot be one, hosts that end in init at a refusal get a device of
// each: they ask devices() what there is.
func (p *process) MakeVDevice(a *abi.NetMakeVDeviceArgs) error { return p.makeVDevice(a, ofNet) }

// family is a kind of tables that counts and makes devices: each host does both twice, and must get the same devices.
type family int

const (
	ofNet family = iota
	ofCollNet
	families
)

func (p *process) makeVDevice(a *abi.NetMakeVDeviceArgs, f family) error {
	e, err := p.current("makeVDevice")
	if err != nil {
		return err
	}
	// Of an older table's list no more is left than its struct has places.
	n := min(int(a.Props.Ndevs), len(a.Props.Devs))
	switch {
	case a.Asked < 1:
		return report.Errorf(report.Usage, "makeVDevice", "a device made of %d", a.Asked)
	case int(a.Asked) > n:
		return report.Errorf(report.Usage, "makeVDevice", "%d devices in one, this release's table takes at most %d", a.Asked, n)
	}
	members := make([]int, n)
	for i := range members {
		members[i] = int(a.Props.Devs[i])
	}
	p.state.Lock()
	defer p.state.Unlock()
	if p.state.begun[f] == p.host.Thread() {
		p.state.begun[f] = 0
	}
	d, err := p.device(e, members, f)
	if err != nil && p.contexts.only(tableCounts) && p.separate(members) {
		report.Mention(p.log, err)
		for _, m := range members {
			if d, err = p.device(e, []int{m}, f); err != nil {
				return err
			}
		}
	}
	if err != nil {
		return err
	}
	*a.D = int32(d)
	return nil
}

// separate reports whether members are several devices. state is held.
func (p *process) separate(members []int) bool {
	for i, m := range members {
		if m < 0 || m >= p.state.found || slices.Contains(members[:i], m) {
			return false
		}
	}
	return len(members) > 1
}

// device returns the number of the device that members make. state is held.
func (p *process) device(e engine, members []int, f family) (int, error) {
	hidden := p.state.devs[p.state.shown[f]:] // made before the host counted anew, or through the other tables
	same := slices.IndexFunc(hidden, func(d deviceStrings) bool { return slices.Equal(d.members, members) })
	if len(hidden) > 0 && same != 0 && p.none() && e.Unfuse() { // it makes others than before
		p.state.devs, same = p.state.devs[:p.state.found], -1
	}
	if same >= 0 {
		p.state.shown[f] += same + 1
		return hidden[same].Index, nil
	}
	d, err := e.Fuse(members)
	if err != nil {
		return 0, err
	}
	named := p.describe(d)
	named.members = members
	p.state.devs = append(p.state.devs, named)
	p.state.shown[f] = len(p.state.devs)
	return d.Index, nil
}

// describe makes the strings of a device. Hosts keep pointers to them, so they
// are never freed, and one text is made once. state is held.
func (p *process) describe(d *device.Device) deviceStrings {
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

// none reports whether no tables show a device that the host has made. state is held.
func (p *process) none() bool {
	return !slices.ContainsFunc(p.state.shown[:], func(n int) bool { return n != p.state.found })
}

// begins notes an init, which a count of devices may follow on its thread.
func (p *process) begins(f family) {
	p.state.Lock()
	defer p.state.Unlock()
	p.state.begun[f] = p.host.Thread()
}

// countDevices is how many devices the host is to know. NCCL counts in two
// places. Right after an init it wants those that it has not fused itself: it has
// loaded the library, which it believes new even if it never went away, or is
// 2.28.3, which counts for each communicator. The fused ones hide then until they
// are made again; 2.24 and 2.25 use them without that. The other count comes after
// fusing, on a thread of its own maybe just after another's init, and wants all.
func (p *process) countDevices(f family) int {
	if p.state.begun[f] == p.host.Thread() {
		p.state.begun[f], p.state.shown[f] = 0, p.state.found
	}
	return p.state.shown[f]
}
