package verbs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/transport/rdma"
	"weft/transport/verbs/machine"
)

// What a device takes, and why not more, follows from the card, the library and
// the kernel's modules; the device's line at init says it.
func TestGPUMemory(t *testing.T) {
	const open, closed = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54"
	const peermem = "module/nvidia_peermem/version"
	for _, c := range []struct {
		name, module, driver string
		soft                 bool
		lacks                string
		want                 rdma.MemKind
		why                  string
	}{
		{"no GPU", "", "", false, "", rdma.MemHost | rdma.MemDMABUF, "no NVIDIA driver is loaded, DMA-BUFs can be registered"},
		{"open driver", "", open, false, "", rdma.MemHost | rdma.MemDMABUF, "nvidia_peermem is not loaded, DMA-BUFs can be registered"},
		{"closed driver", "", closed, false, "", rdma.MemHost | rdma.MemDMABUF,
			"nvidia_peermem is not loaded, DMA-BUFs can be registered, but the NVIDIA driver makes none: it is not of the open kernel modules"},
		{"peermem alone", peermem, closed, false, "ibv_reg_dmabuf_mr", rdma.MemHost | rdma.MemCUDA,
			"nvidia_peermem is loaded, no DMA-BUFs: a test's library has no ibv_reg_dmabuf_mr"},
		{"both", "kernel/mm/memory_peers/nv_mem/version", open, false, "", rdma.MemHost | rdma.MemCUDA | rdma.MemDMABUF,
			"nv_mem is loaded, DMA-BUFs can be registered"},
		{"neither", "", open, false, "ibv_reg_dmabuf_mr", rdma.MemHost,
			"nvidia_peermem is not loaded, no DMA-BUFs: a test's library has no ibv_reg_dmabuf_mr, NCCL stages GPU memory through the host's"},
		{"AMD", "kernel/mm/memory_peers/amdkfd/version", "", false, "ibv_reg_dmabuf_mr", rdma.MemHost | rdma.MemCUDA,
			"amdkfd is loaded, no DMA-BUFs: a test's library has no ibv_reg_dmabuf_mr"},
		{"AMD, no client", "module/amdgpu/version", "", false, "", rdma.MemHost | rdma.MemDMABUF,
			"amdgpu is no client of peer memory, DMA-BUFs can be registered"},
		{"software", peermem, open, true, "ibv_reg_dmabuf_mr", rdma.MemHost,
			"nvidia_peermem does not serve a device of software, no DMA-BUFs: a test's library has no ibv_reg_dmabuf_mr, NCCL stages"},
	} {
		h := fakeHost(t, eth(1, true, "10.0.0.1/24"))
		h.Proc = t.TempDir()
		if c.module != "" {
			write(t, "1\n", h.Sysfs, c.module)
		}
		if c.driver != "" {
			write(t, c.driver+"\nGCC version:  gcc version 12.2.0\n", h.Proc, "driver/nvidia/version")
		}
		card := cardAt(t, h, roce("a", "10.0.0.1", 1), "0000:3b:00.0")
		if c.soft {
			soft := roce("b", "10.0.0.1", 1)
			soft.sysfs = strings.Replace(card.sysfs, "/a", "/b", 1)
			write(t, "eth1\n", soft.sysfs, "parent")
			card = soft
		}
		f := newFake(t, card)
		if c.lacks != "" {
			f.lacks = []string{c.lacks}
		}
		p, log, err := f.start(t, h, nil)
		if err != nil {
			t.Fatal(err)
		}
		if d := p.Devices()[0]; d.Pointers != c.want || d.Flush || log.Count("INFO INIT device 0", "; memory "+c.want.String()+": "+c.why) != 1 {
			t.Errorf("%s: %v, %q", c.name, d.Pointers, log.Lines())
		}
		p.Close()
	}
}

// Any folder of the clients of peer memory that has a version is one, wherever the kernel keeps them.
func TestPeerClients(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []string
		want  string
	}{
		{"none", nil, ""},
		{"an empty folder", []string{"kernel/mm/memory_peers/"}, ""},
		{"NVIDIA's", []string{"kernel/mm/memory_peers/nv_mem/version"}, "nv_mem"},
		{"AMD's", []string{"kernel/mm/memory_peers/amdkfd/version"}, "amdkfd"},
		{"of another name", []string{"kernel/memory_peers/other/version"}, "other"},
		{"in the last place", []string{"kernel/mm/memory_peers/", "memory_peers/amdkfd/version"}, "amdkfd"},
		{"the first of two", []string{"kernel/mm/memory_peers/nv_mem_nc/version", "memory_peers/amdkfd/version"}, "nv_mem_nc"},
		{"a file alone", []string{"kernel/mm/memory_peers/version"}, ""},
		{"not yet registered", []string{"kernel/mm/memory_peers/amdkfd/"}, ""},
		{"behind one that is not", []string{"kernel/mm/memory_peers/a/", "kernel/mm/memory_peers/amdkfd/version"}, "amdkfd"},
		{"hidden", []string{"kernel/mm/memory_peers/.hidden/version"}, ""},
	} {
		h := &machine.Machine{Sysfs: t.TempDir(), Proc: t.TempDir()}
		for _, f := range c.files {
			if strings.HasSuffix(f, "/") {
				if err := os.MkdirAll(filepath.Join(h.Sysfs, f), 0o755); err != nil {
					t.Fatal(err)
				}
				continue
			}
			write(t, "1.0\n", h.Sysfs, f)
		}
		if got := h.GDR().Module; got != c.want {
			t.Errorf("%s: client %q, want %q", c.name, got, c.want)
		}
	}
}
