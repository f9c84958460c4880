package doctor

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"weft/internal/doctor/machine"
)

const gpuTopic = "GPUs"

// gpuRules: GPUs, and how cards reach their memory.
var gpuRules = []Rule{
	{
		Code: "WEFT-080", Topic: gpuTopic, Severity: Slows,
		Title:       "cards cannot reach GPU memory",
		Symptom:     "`GPU Direct RDMA Disabled`, `GDR 0`; a host's bandwidth ends at that of its memory",
		Consequence: "what the GPU sends and receives is copied through host memory",
		check: func(x *Exam) []Finding {
			if len(x.nvidias()) == 0 || len(x.used()) == 0 || x.peerClient() != "" {
				return nil
			}
			why, f := x.noDMABUF()
			if why == "" {
				return nil
			}
			f.Evidence = "nvidia_peermem is not loaded, and " + why
			return f.one()
		},
	},
	{
		Code: "WEFT-081", Topic: gpuTopic, Severity: Slows,
		Title:       "Access Control Services send what GPU and card say to each other through the root",
		Symptom:     "GPUDirect RDMA at a fraction of the rate; status 4 or 5, or hangs, between GPU and card",
		Consequence: "traffic between two devices below one PCIe switch goes up to the processor and back",
		check: func(x *Exam) (all []Finding) {
			told := map[string]bool{}
			for _, f := range x.pairedFunctions() {
				for i, bridge := range f.Bridges() {
					control, known := uint16(0), false
					if i > 0 && !told[bridge] { // a root port redirects nothing that a switch below it has not passed on
						control, known = x.ACS(bridge)
					}
					if told[bridge] = true; known && control&machine.P2P != 0 {
						all = append(all, seen(path.Base(bridge), "%s, above %s: ACSCtl is %#x", path.Base(bridge), f.Address, control).
							mend("setpci -s %s ECAP_ACS+0x6.w=0000 (until the next boot; lasting: ACS off in the BIOS)", path.Base(bridge)))
					}
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-082", Topic: gpuTopic, Severity: Slows,
		Title:       "the IOMMU translates what cards and GPUs do",
		Symptom:     "bandwidth of GPUDirect RDMA is low or varies; `DMAR` or `AMD-Vi` faults in dmesg",
		Consequence: "each access goes through tables of the IOMMU, and what two devices say to each other through the root",
		check: func(x *Exam) []Finding {
			var said []string
			for _, f := range x.pairedFunctions() {
				if kind := x.Text("/sys/kernel/iommu_groups", f.Group, "type"); f.Group != "" && strings.HasPrefix(kind, "DMA") {
					said = append(said, fmt.Sprintf("%s (group %s, %s)", f.Address, f.Group, kind))
				}
			}
			if said == nil {
				return nil
			}
			return seen("iommu", "%s", strings.Join(said, ", ")).
				mend("add 'iommu=pt' (Arm: 'iommu.passthrough=1') to GRUB_CMDLINE_LINUX in /etc/default/grub, update-grub, and reboot").one()
		},
	},
	{
		Code: "WEFT-083", Topic: gpuTopic, Severity: Breaks,
		Title:       "there are GPUs, and their device files are not here",
		Symptom:     "`no CUDA-capable device is detected`, in a container",
		Consequence: "no process here can use a GPU",
		Remedy:      "docker run --gpus all ..., or runtimeClassName: nvidia and nvidia.com/gpu in the pod's limits",
		check: func(x *Exam) []Finding {
			if !x.Exists("/proc/driver/nvidia/version") || len(x.nvidias()) == 0 || x.Exists("/dev/nvidiactl") {
				return nil
			}
			return seen("/dev/nvidiactl", "%s is driven by nvidia, and /dev/nvidiactl is not there", x.nvidias()[0].Address).one()
		},
	},
	{
		Code: "WEFT-084", Topic: gpuTopic, Severity: Breaks,
		Title:       "a GPU is not driven by NVIDIA's driver",
		Symptom:     "`nvidia-smi` shows fewer GPUs than `lspci`",
		Consequence: "CUDA does not see the GPU",
		Remedy:      "apt-get install -y nvidia-open (and nouveau off: echo 'blacklist nouveau' > /etc/modprobe.d/nouveau.conf), then reboot",
		check: func(x *Exam) (all []Finding) {
			for _, f := range x.nvidias() {
				if f.Driver != "nvidia" && f.Driver != "vfio-pci" {
					all = append(all, seen(f.Address, "%s: driver %q", f.Address, f.Driver))
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-085", Topic: gpuTopic, Severity: Breaks,
		Title:       "libcuda and NVIDIA's kernel module are of different versions",
		Symptom:     "`Driver/library version mismatch`",
		Consequence: "CUDA does not start: an update replaced the files under a running module",
		Remedy:      "reboot (or unload the module: rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia)",
		check: func(x *Exam) []Finding {
			module := driverVersion.FindString(x.driverText())
			l := x.Dlopen("libcuda.so.1")
			if l == nil || module == "" {
				return nil
			}
			library := driverVersion.FindString(path.Base(l.Real))
			if library == "" || library == module || strings.Contains(l.Real, "/compat/") {
				return nil // of CUDA's forward compatibility, which is newer by design
			}
			return seen(l.Path, "%s, and /proc/driver/nvidia/version says %s", l.Real, module).one()
		},
	},
	{
		Code: "WEFT-086", Topic: gpuTopic, Severity: Slows,
		Title:       "a setting keeps cards away from GPU memory",
		Symptom:     "`GPU Direct RDMA Disabled` on a machine that has it",
		Consequence: "what the GPU sends and receives is copied through host memory",
		check: func(x *Exam) (all []Finding) {
			if len(x.nvidias()) == 0 || len(x.used()) == 0 {
				return nil
			}
			for _, c := range []struct{ name, value string }{{"NCCL_NET_GDR_LEVEL", "LOC"}, {"NCCL_NET_GDR_LEVEL", "0"}, {"NCCL_IB_CUDA_SUPPORT", "0"}} {
				if s := x.set(c.name); s.Value == c.value {
					all = append(all, seen(c.name, "%s=%s (%s)", c.name, s.Value, s.From).with(c.name, "").mend("%s", s.Undo))
				}
			}
			return all
		},
	},
}

// noDMABUF says why GPU memory cannot become a DMA-BUF that a card takes, and what mends it; "": it can, as far as files tell.
func (x *Exam) noDMABUF() (why string, mended Finding) {
	major, minor, known := x.Kernel()
	switch dmabuf := x.set("NCCL_DMABUF_ENABLE"); {
	case x.closedDriver():
		return "the driver is not of the open kernel modules, which alone make DMA-BUFs", Finding{Subject: "nvidia_peermem"}.
			mend("modprobe nvidia_peermem, and 'echo nvidia_peermem > /etc/modules-load.d/nvidia_peermem.conf'; or install the open kernel modules")
	case known && (major < 5 || major == 5 && minor < 12):
		return fmt.Sprintf("kernel %d.%d has no DMA-BUF for RDMA (5.12 has)", major, minor), Finding{Subject: "nvidia_peermem"}.mend("modprobe nvidia_peermem")
	case dmabuf.Value == "0":
		return fmt.Sprintf("NCCL_DMABUF_ENABLE=0 (%s)", dmabuf.From), Finding{Subject: "NCCL_DMABUF_ENABLE"}.with("NCCL_DMABUF_ENABLE", "").mend("%s", dmabuf.Undo)
	}
	return "", Finding{}
}

var driverVersion = regexp.MustCompile(`\b\d{3,4}\.\d+(\.\d+)*\b`)

func (x *Exam) driverText() string {
	for _, line := range x.Lines("/proc/driver/nvidia/version") {
		if strings.HasPrefix(line, "NVRM") {
			return line
		}
	}
	return ""
}

func (x *Exam) closedDriver() bool {
	text := x.driverText()
	return text != "" && !strings.Contains(text, "Open Kernel Module")
}

func (x *Exam) nvidias() (all []*machine.Function) {
	for _, f := range x.GPUs() {
		if f.Vendor == machine.VendorNVIDIA {
			all = append(all, f)
		}
	}
	return all
}

// peerClient is a client of the kernel's peer memory, by which cards reach the memory of a GPU; "": there is none.
func (x *Exam) peerClient() string {
	for _, folder := range []string{"/sys/kernel/mm/memory_peers", "/sys/kernel/memory_peers", "/sys/memory_peers"} {
		for _, name := range x.List(folder) {
			if x.Exists(folder, name, "version") {
				return name
			}
		}
	}
	for _, name := range []string{"nvidia_peermem", "nv_peer_mem"} {
		if x.Module(name) {
			return name
		}
	}
	return ""
}

// pairedFunctions are the GPUs and the cards in use of a machine that has both.
func (x *Exam) pairedFunctions() []*machine.Function {
	gpus := x.GPUs()
	var cards []*machine.Function
	for _, p := range x.used() {
		if p.Card.PCI != nil && (len(cards) == 0 || cards[len(cards)-1] != p.Card.PCI) {
			cards = append(cards, p.Card.PCI)
		}
	}
	if len(gpus) == 0 || len(cards) == 0 {
		return nil
	}
	return append(gpus, cards...)
}
