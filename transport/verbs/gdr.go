package verbs

import (
	"syscall"

	"weft/transport/rdma"
)

// gdr is what lets a NIC reach GPU memory by its virtual address.
type gdr struct {
	module string // the kernel module that serves it; "" if none is loaded
}

// The modules that make GPU memory known to ibv_reg_mr, in the order in which they are looked for.
var peerModules = []struct{ name, file string }{
	{"nv_mem", "kernel/mm/memory_peers/nv_mem/version"},
	{"nv_mem_nc", "kernel/mm/memory_peers/nv_mem_nc/version"},
	{"nvidia_peermem", "module/nvidia_peermem/version"},
}

func (h *Host) detectGDR() gdr {
	for _, m := range peerModules {
		if exists(h.Sysfs, m.file) {
			return gdr{module: m.name}
		}
	}
	return gdr{}
}

// GPUMemory says whether the device reaches GPU memory, by which way, or why not.
func (d *Device) GPUMemory() (kinds rdma.MemKind, why string) {
	is, noDMABUF := d.adapter.dmabuf.State()
	if d.provider.gdr.module != "" {
		kinds, why = rdma.MemCUDA, d.provider.gdr.module+" is loaded"
	} else {
		why = "nvidia_peermem is not loaded"
	}
	switch is {
	case Yes:
		kinds, why = kinds|rdma.MemDMABUF, why+", DMA-BUFs can be registered"
	case No:
		why += ", " + noDMABUF
	default:
		why += ", whether DMA-BUFs can be registered could not be found out"
	}
	return kinds, why
}

// pointers is every kind of memory that the device takes. DMA-BUF is found out
// once per card, by registering a descriptor that cannot be one.
func (d *Device) pointers() rdma.MemKind {
	a := d.adapter
	if is, _ := a.dmabuf.State(); is == Unknown {
		a.probeDMABUF()
	}
	kinds, _ := d.GPUMemory()
	return rdma.MemHost | kinds
}

// probeDMABUF: a kernel that knows DMA-BUFs complains of the descriptor (EBADF),
// one that does not, of the operation.
func (a *adapter) probeDMABUF() {
	pd, err := a.acquirePD()
	if err != nil {
		a.p.log.Info(rdma.Net, "whether %s takes DMA-BUFs is not known: %v", a.name, err)
		return
	}
	defer pd.Release()
	keys, errno := a.p.lib.regDmabufMR(pd.raw, 0, 0, 0, -1, 0)
	switch {
	case errno == 0: // a library that answers anything
		a.p.lib.deregMR(keys.mr)
		a.dmabuf.no("ibv_reg_dmabuf_mr takes a descriptor that is none")
	case unsupported(errno):
		a.dmabuf.no("ibv_reg_dmabuf_mr answers " + errno.Error())
	case errno == syscall.EBADF, errno == syscall.EINVAL, errno == syscall.EFAULT:
		a.dmabuf.yes()
	default:
		a.p.log.Info(rdma.Net, "%v", fail("ibv_reg_dmabuf_mr", a.name, errno, "finding out whether DMA-BUFs can be registered"))
	}
}
