package machine

import (
	"os"
	"path/filepath"
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
		entries, _ := os.ReadDir(filepath.Join(m.Sysfs, folder)) // no folder: no client
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), ".") && Exists(m.Sysfs, folder, e.Name(), "version") {
				return e.Name()
			}
		}
	}
	return ""
}

// GDR reads that.
func (m *Machine) GDR() (g GDR) {
	if g.Module = m.peerClient(); g.Module == "" && Exists(m.Sysfs, "module/nvidia_peermem/version") {
		g.Module = "nvidia_peermem"
	}
	text, err := Read(m.Proc, "driver/nvidia/version")
	g.Driver = err == nil || Exists(m.Sysfs, "module/nvidia")
	g.Closed = err == nil && !strings.Contains(text, "Open Kernel Module")
	g.AMD = Exists(m.Sysfs, "module/amdgpu")
	return g
}
