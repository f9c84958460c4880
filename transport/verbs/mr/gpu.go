package mr

import (
	"path/filepath"
	"strings"
	"syscall"

	"weft/internal/report"
	"weft/transport/rdma"
	"weft/transport/verbs/card"
	"weft/transport/verbs/fail"
	"weft/transport/verbs/machine"
)

// GPUMemory says whether a device of the card, or of its data-direct path, reaches
// GPU memory, by which way, or why not.
func (m *Domains) GPUMemory(direct bool) (kinds rdma.MemKind, why string) {
	c := m.card
	g := c.Lib.GDR
	var says []string
	switch {
	case g.Module != "" && !software(c):
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
	dmabuf := &c.DMABuf
	if direct {
		dmabuf = &c.Direct
	}
	switch is, no := dmabuf.State(); is {
	case card.Yes:
		kinds |= rdma.MemDMABUF
		says = append(says, "DMA-BUFs can be registered")
		if direct {
			says[len(says)-1] += " on the data-direct path " + filepath.Base(c.DirectPath)
		}
		if g.Closed {
			says = append(says, "but the NVIDIA driver makes none: it is not of the open kernel modules")
		}
	case card.No:
		says = append(says, "no DMA-BUFs: "+no)
	default:
		says = append(says, "whether DMA-BUFs can be registered could not be found out")
	}
	if kinds == 0 {
		says = append(says, "NCCL stages GPU memory through the host's")
	}
	if is, no := c.Direct.State(); is == card.No {
		says = append(says, "no data-direct path: "+no)
	}
	return kinds, strings.Join(says, ", ")
}

// software reports whether no hardware of its own is behind the card, as behind
// Soft-RoCE: the processor moves its data, and that reaches no GPU's addresses.
func software(c *card.Card) bool {
	return machine.Exists(c.Sysfs) && !machine.Exists(c.Sysfs, "device")
}

// Pointers is every kind of memory that such a device takes. DMA-BUF is found out
// once per card.
func (m *Domains) Pointers(direct bool) rdma.MemKind {
	if is, _ := m.card.DMABuf.State(); is == card.Unknown {
		m.probeDMABUF(false)
	}
	kinds, _ := m.GPUMemory(direct)
	return rdma.MemHost | kinds
}

// TakesDirect reports whether the card registers DMA-BUFs on a data-direct path.
func (m *Domains) TakesDirect() bool {
	c := m.card
	if c.DirectPath == "" {
		return false
	}
	if is, _ := c.Direct.State(); is == card.Unknown {
		m.probeDMABUF(true)
	}
	is, _ := c.Direct.State()
	return is == card.Yes
}

// probeDMABUF registers a descriptor that cannot be one, on either path. A
// kernel that knows DMA-BUFs complains of the descriptor (EBADF), one that does
// not, of the operation.
func (m *Domains) probeDMABUF(direct bool) {
	c := m.card
	call, register, f := "ibv_reg_dmabuf_mr", c.Lib.RegDMABufMR, &c.DMABuf
	if direct {
		call, register, f = "mlx5dv_reg_dmabuf_mr", c.Lib.MLX5RegDirect, &c.Direct
	}
	pd, err := m.Acquire(direct)
	if err != nil {
		c.Lib.Log.Info(report.Net, "%s: cannot tell whether it takes DMA-BUFs: %v", c.Name, err)
		return
	}
	defer pd.Release()
	keys, errno := register(pd.raw, 0, 0, 0, -1, 0)
	switch {
	case errno == 0: // a library that takes anything
		c.Lib.DeregMR(keys.MR)
		f.No(call + " takes descriptor -1")
	case fail.Unsupported(errno):
		f.No(call + " returned " + errno.Error())
	case errno == syscall.EBADF, errno == syscall.EINVAL, errno == syscall.EFAULT:
		f.Yes()
	default:
		c.Lib.Log.Info(report.Net, "%v", fail.Call(call, c.Name, errno, "finding out whether DMA-BUFs can be registered"))
	}
}
