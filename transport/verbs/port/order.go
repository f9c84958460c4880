package port

import (
	"cmp"
	"slices"

	"weft/transport/verbs/machine"
)

// Arrange puts the devices into their final order, and completes what depends on it
// or on a protection domain.
func Arrange(devices []*Device, byPCI bool) {
	if byPCI {
		orderByPCI(devices)
	}
	numberPorts(devices)
	for i, d := range devices {
		d.Index = i
		d.Pointers = d.domains.Pointers(d.direct)
	}
}

// numberPorts gives each device NCCL's port number: the port of the card plus
// the devices on the same card that come before it. The list is in its final order.
func numberPorts(devices []*Device) {
	before := map[string]int{}
	for _, d := range devices {
		d.Port = int(d.number)
		if d.PCIPath != "" {
			d.Port += before[d.PCIPath]
			before[d.PCIPath]++
		}
	}
}

// orderByPCI sorts by PCI address, so that the ranks of a job agree on the
// order; devices without an address come last, in the order they had.
func orderByPCI(devices []*Device) {
	slices.SortStableFunc(devices, func(a, b *Device) int {
		switch {
		case a.function == "" && b.function == "":
			return 0
		case a.function == "":
			return 1
		case b.function == "":
			return -1
		}
		return cmp.Compare(machine.PCINumber(a.function), machine.PCINumber(b.function))
	})
}
