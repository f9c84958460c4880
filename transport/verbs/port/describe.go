package port

import (
	"fmt"
	"path/filepath"

	"weft/internal/knob"
	"weft/transport/rdma"
)

// Label is the device's part of the line that says what is used.
func (d *Device) Label() string {
	return fmt.Sprintf("[%d]%s:%d%s/%s", d.Index, d.NIC, d.number, map[bool]string{true: "_dma"}[d.direct], d.link())
}

// link is the kind of the port's.
func (d *Device) link() string { return map[bool]string{true: "IB", false: "RoCE"}[d.InfiniBand] }

// Describe is the device's line in the log of init.
func (d *Device) Describe() string {
	rail := ""
	if d.RailID != rdma.NoID || d.PlaneID != rdma.NoID {
		rail = fmt.Sprintf(", rail %d, plane %d", d.RailID, d.PlaneID)
	}
	pci := "without PCI address"
	if d.function != "" {
		pci = "PCI " + filepath.Base(d.function)
	}
	if d.direct {
		pci += " and " + filepath.Base(d.PCIPath) + " (data-direct)"
	}
	name := d.NIC
	if d.direct {
		name = d.Name + ", " + name
	}
	_, gpu := d.GPUMemory()
	order := ""
	if d.card.Lib.Knobs.Int(knob.IBOOORQ) != 0 { // the user asks for them
		order = "; out-of-order receives: " + d.card.DescribeOrder()
	}
	return fmt.Sprintf("device %d is %s port %d: %s, %d Mb/s, MTU %d, %s%s, firmware %q, %d QPs; GID %v: %s; memory %v: %s%s",
		d.Index, name, d.number, d.link(), d.SpeedMbps, d.PathMTU(), pci, rail, d.card.Attr.Firmware, d.MaxComms, d.GIDs()[0], d.gidWhy, d.Pointers, gpu, order)
}
