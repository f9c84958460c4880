package plugin

import (
	"weft/abi"
	"weft/internal/report"
)

// MakeVDevice makes one device of several; devices() counts it from then on.
// Where they cannot be one, hosts that end in init at a refusal get a device of
// each: they ask devices() what there is.
func (p *process) MakeVDevice(a *abi.NetMakeVDeviceArgs) error { return p.makeVDevice(a, ofNet) }

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
	d, err := p.list.fuse(e, members, f, p.contexts.only(tableCounts))
	if err != nil {
		return err
	}
	*a.D = int32(d)
	return nil
}
