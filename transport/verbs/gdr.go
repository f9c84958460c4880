package verbs

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"weft/internal/report"
	"weft/transport/rdma"
)

// gdr is what this machine has for NICs to reach GPU memory.
type gdr struct {
	module string // the client of peer memory, which serves virtual addresses of GPU memory; "" if there is none
	driver bool   // NVIDIA's driver is loaded
	closed bool   // and is not of the open kernel modules, which alone make DMA-BUFs of GPU memory
	amd    bool   // AMD's driver is loaded
}

// Where a kernel keeps the clients of peer memory depends on its age and on the module that serves them.
var peerFolders = []string{"kernel/mm/memory_peers", "kernel/memory_peers", "memory_peers"}

// peerClient is the first client of peer memory: a folder of any name (nv_mem of NVIDIA's, amdkfd of AMD's driver) which
// has a version, as it does once it is registered.
func (h *Host) peerClient() string {
	for _, folder := range peerFolders {
		entries, _ := os.ReadDir(filepath.Join(h.Sysfs, folder)) // no folder: no client
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), ".") && exists(h.Sysfs, folder, e.Name(), "version") {
				return e.Name()
			}
		}
	}
	return ""
}

func (h *Host) detectGDR() (g gdr) {
	if g.module = h.peerClient(); g.module == "" && exists(h.Sysfs, "module/nvidia_peermem/version") {
		g.module = "nvidia_peermem"
	}
	text, err := read(h.Proc, "driver/nvidia/version")
	g.driver = err == nil || exists(h.Sysfs, "module/nvidia")
	g.closed = err == nil && !strings.Contains(text, "Open Kernel Module")
	g.amd = exists(h.Sysfs, "module/amdgpu")
	return g
}

// GPUMemory says whether the device reaches GPU memory, by which way, or why not.
func (d *Device) GPUMemory() (kinds rdma.MemKind, why string) {
	g, a := d.provider.gdr, d.adapter
	var says []string
	switch {
	case g.module != "" && !a.software():
		kinds = rdma.MemCUDA
		says = append(says, g.module+" is loaded")
	case g.module != "":
		says = append(says, g.module+" does not serve a device of software")
	case g.driver:
		says = append(says, "nvidia_peermem is not loaded")
	case g.amd:
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
		if g.closed {
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
	return exists(a.sysfs) && !exists(a.sysfs, "device")
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
