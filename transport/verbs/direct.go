package verbs

import (
	"path/filepath"
	"syscall"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/verbs/ibv"
)

// findDirect looks for the card's data-direct function: a second PCI function
// through which it reaches GPU memory on a shorter way than through its own.
func (a *adapter) findDirect(device ibv.Object) {
	if a.p.knobs.Int(knob.IBDataDirect) == 0 || !a.mlx5(device) {
		return
	}
	path, errno := a.p.lib.MLX5DirectPath(a.context)
	switch errno {
	case 0:
	case syscall.ENODEV, syscall.ENOSYS: // no such card, or a library from before there were any
		return
	default:
		a.p.log.Info(report.Init, "%v", fail("mlx5dv_get_data_direct_sysfs_path", a.name, errno, "the card is used without a data-direct path"))
		return
	}
	sysfs := filepath.Dir(filepath.Dir(filepath.Dir(a.sysfs))) // .../class/infiniband/name
	real, err := filepath.EvalSymlinks(filepath.Join(sysfs, path))
	if err != nil {
		a.p.log.Info(report.Init, "%s has a data-direct path that is not in sysfs, and is used without: %v", a.name, err)
		return
	}
	a.direct = real
}

// views are the devices that a port appears as: itself, its card's data-direct
// path to GPU memory, or both.
func (d *Device) views(both bool) []*Device {
	a := d.adapter
	if a.direct == "" {
		return []*Device{d}
	}
	if is, _ := a.directly.State(); is == Unknown {
		a.probeDMABUF(true)
	}
	if is, _ := a.directly.State(); is != Yes {
		return []*Device{d}
	}
	t := &Device{Device: d.Device, InfiniBand: d.InfiniBand, NIC: d.NIC, Firmware: d.Firmware, provider: d.provider, adapter: a,
		portNum: d.portNum, function: d.function, gidWhy: d.gidWhy, direct: true, now: d.now}
	t.Name, t.PCIPath, t.Flush = d.Name+"_dma", a.direct, true
	if both {
		return []*Device{d, t}
	}
	return []*Device{t}
}

// SamePort reports whether two devices stand for one port.
func (d *Device) SamePort(o *Device) bool { return d.now == o.now }

// registerDirect registers a DMA-BUF through the data-direct function. Where that
// fails the card's own path may do, and what failed is said once.
func (a *adapter) registerDirect(pd *PD, b *Buffer, s span, access ibv.Access) (keys ibv.MemoryKeys, how string, ok bool) {
	extras := []ibv.Access{0}
	if !b.Strict && a.relaxes() {
		extras = []ibv.Access{ibv.RelaxedOrdering, 0}
	}
	var errno syscall.Errno
	for _, extra := range extras {
		if keys, errno = a.p.lib.MLX5RegDirect(pd.raw, s.offset, s.end-s.start, uintptr(s.start), b.fd, access|extra); errno == 0 {
			how = "data-direct DMA-BUF"
			if extra != 0 {
				how += ", relaxed ordering"
			}
			return keys, how, true
		}
	}
	a.indirect.Do(func() {
		a.p.log.Info(report.Net, "%v", fail("mlx5dv_reg_dmabuf_mr", a.name, errno, "memory of which the data-direct path takes none is registered on the card's own"))
	})
	return ibv.MemoryKeys{}, "", false
}
