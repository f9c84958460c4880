package verbs

import (
	"path/filepath"
	"strings"
	"syscall"

	"weft/internal/report"
	"weft/transport/rdma"
	"weft/transport/verbs/machine"
)

// GPUMemory says whether the device reaches GPU memory, by which way, or why not.
func (d *Device) GPUMemory() (kinds rdma.MemKind, why string) {
	g, a := d.provider.gdr, d.adapter
	var says []string
	switch {
	case g.Module != "" && !a.software():
		kinds = rdma.MemCUDA
		says = append(says, g.Module+" is loaded")
	case g.Module != "":
		says = append(says, g.Module+" does not serve a device of software")
	case g.Driver:
		says = append(says, "nvidia_peermem is not loaded")
	case g.AMD:
		says = append(says, "amdgpu is no client of peer memory")
	default:
		says = append(says, "no NVIDIA driver is loaded")
	}
	dmabuf := &a.dmabuf
	if d.direct {
		dmabuf = &a.directly
	}
	switch is, no := dmabuf.State(); is {
	case Yes:
		kinds |= rdma.MemDMABUF
		says = append(says, "DMA-BUFs can be registered")
		if d.direct {
			says[len(says)-1] += " on the data-direct path " + filepath.Base(a.direct)
		}
		if g.Closed {
			says = append(says, "but the NVIDIA driver makes none: it is not of the open kernel modules")
		}
	case No:
		says = append(says, "no DMA-BUFs: "+no)
	default:
		says = append(says, "whether DMA-BUFs can be registered could not be found out")
	}
	if kinds == 0 {
		says = append(says, "NCCL stages GPU memory through the host's")
	}
	if is, no := a.directly.State(); is == No {
		says = append(says, "no data-direct path: "+no)
	}
	return kinds, strings.Join(says, ", ")
}

// software reports whether no hardware of its own is behind the card, as behind
// Soft-RoCE: the processor moves its data, and that reaches no GPU's addresses.
func (a *adapter) software() bool {
	return machine.Exists(a.sysfs) && !machine.Exists(a.sysfs, "device")
}

// pointers is every kind of memory that the device takes. DMA-BUF is found out
// once per card.
func (d *Device) pointers() rdma.MemKind {
	if is, _ := d.adapter.dmabuf.State(); is == Unknown {
		d.adapter.probeDMABUF(false)
	}
	kinds, _ := d.GPUMemory()
	return rdma.MemHost | kinds
}

// probeDMABUF registers a descriptor that cannot be one, on either path. A
// kernel that knows DMA-BUFs complains of the descriptor (EBADF), one that does
// not, of the operation.
func (a *adapter) probeDMABUF(direct bool) {
	call, register, f := "ibv_reg_dmabuf_mr", a.p.lib.RegDMABufMR, &a.dmabuf
	if direct {
		call, register, f = "mlx5dv_reg_dmabuf_mr", a.p.lib.MLX5RegDirect, &a.directly
	}
	pd, err := a.acquirePD(direct)
	if err != nil {
		a.p.log.Info(report.Net, "whether %s takes DMA-BUFs is not known: %v", a.name, err)
		return
	}
	defer pd.Release()
	keys, errno := register(pd.raw, 0, 0, 0, -1, 0)
	switch {
	case errno == 0: // a library that answers anything
		a.p.lib.DeregMR(keys.MR)
		f.no(call + " takes a descriptor that is none")
	case unsupported(errno):
		f.no(call + " answers " + errno.Error())
	case errno == syscall.EBADF, errno == syscall.EINVAL, errno == syscall.EFAULT:
		f.yes()
	default:
		a.p.log.Info(report.Net, "%v", fail(call, a.name, errno, "finding out whether DMA-BUFs can be registered"))
	}
}
