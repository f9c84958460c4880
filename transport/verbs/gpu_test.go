package verbs

import (
	"strings"
	"testing"

	"weft/internal/fakeibv"
	"weft/transport/rdma"
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
		h := fakeibv.Host(t, fakeibv.Eth(1, true, "10.0.0.1/24"))
		if c.module != "" {
			fakeibv.Write(t, "1\n", h.Sys(c.module))
		}
		if c.driver != "" {
			fakeibv.Write(t, c.driver+"\nGCC version:  gcc version 12.2.0\n", h.Root, "proc/driver/nvidia/version")
		}
		card := fakeibv.At(t, h, fakeibv.RoCE("a", "10.0.0.1", 1), "0000:3b:00.0")
		if c.soft {
			soft := fakeibv.RoCE("b", "10.0.0.1", 1)
			soft.Sysfs = strings.Replace(card.Sysfs, "/a", "/b", 1)
			fakeibv.Write(t, "eth1\n", soft.Sysfs, "parent")
			card = soft
		}
		f := fakeibv.New(t, card)
		if c.lacks != "" {
			f.Lacking = []string{c.lacks}
		}
		p, log, err := start(f, h, nil)
		if err != nil {
			t.Fatal(err)
		}
		if d := p.Devices()[0]; d.Pointers != c.want || d.Flush || log.Count("INFO INIT device 0", "; memory "+c.want.String()+": "+c.why) != 1 {
			t.Errorf("%s: %v, %q", c.name, d.Pointers, log.Lines())
		}
		p.Close()
	}
}
