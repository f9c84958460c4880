package machine

import (
	"os"
	"strings"
)

// GDR is what this machine has for NICs to reach GPU memory.
type GDR struct {
	Module string // the client of peer memory, which serves virtual addresses of GPU memory; "" if there is none
	Driver bool   // NVIDIA's driver is loaded
	Closed bool   // and is not of the open kernel modules, which alone make DMA-BUFs of GPU memory
	AMD    bool   // AMD's driver is loaded
}

// Where a kernel keeps the clients of peer memory depends on its age and on the module that serves them.
var peerFolders = []string{"kernel/mm/memory_peers", "kernel/memory_peers", "memory_peers"}

// peerClient is the first client of peer memory: a folder of any name (nv_mem of NVIDIA's, amdkfd of AMD's driver) which
// has a version, as it does once it is registered.
func (m *Machine) peerClient() string {
	for _, folder := range peerFolders {
		entries, _ := os.ReadDir(m.Sys(folder)) // no folder: no client
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), ".") && Exists(m.Sys(folder, e.Name(), "version")) {
				return e.Name()
			}
		}
	}
	return ""
}

// GDR reads that.
func (m *Machine) GDR() (g GDR) {
	if g.Module = m.peerClient(); g.Module == "" && Exists(m.Sys("module/nvidia_peermem/version")) {
		g.Module = "nvidia_peermem"
	}
	text, err := Read(m.Root, "proc/driver/nvidia/version")
	g.Driver = err == nil || Exists(m.Sys("module/nvidia"))
	g.Closed = err == nil && !strings.Contains(text, "Open Kernel Module")
	g.AMD = Exists(m.Sys("module/amdgpu"))
	return g
}
