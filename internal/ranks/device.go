package ranks

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"weft/internal/host"
)

// device finds the device to run on, by its name or number; several, joined by
// +, are made one.
func (r *rank) device() (dev int, err error) {
	n, err := r.n.Devices()
	if err != nil {
		return 0, err
	}
	var names []string
	for d := range n {
		p, err := r.n.Props(d)
		if err != nil {
			return 0, err
		}
		names = append(names, p.Name)
	}
	if dev, err = PickDevice(r.o.Device, names); err == nil {
		return dev, nil
	}
	var members []int
	for _, name := range strings.Split(r.o.Device, "+") {
		d, err := PickDevice(name, names)
		if err != nil {
			return 0, err
		}
		members = append(members, d)
	}
	if dev, err = r.n.MakeVDevice(members); host.NoSlot(err) {
		return 0, fmt.Errorf("%s cannot make one device of several: makeVDevice came with v%d", host.FamilyNet.Symbol(r.n.Version), host.SinceVDevices)
	}
	if err != nil {
		return 0, fmt.Errorf("one device of %s: %w; the log (-v) says why", r.o.Device, err)
	}
	return dev, nil
}

// PickDevice is the device of that name or number; the first, if there is no name.
func PickDevice(name string, names []string) (int, error) {
	if len(names) == 0 {
		return 0, errors.New("the plugin has no device")
	}
	if name == "" {
		return 0, nil
	}
	for d, n := range names {
		if n == name {
			return d, nil
		}
	}
	if d, err := strconv.Atoi(name); err == nil && d >= 0 && d < len(names) {
		return d, nil
	}
	return 0, fmt.Errorf("no device %q; the plugin has %d: %s", name, len(names), strings.Join(names, " "))
}
