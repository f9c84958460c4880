package doctor

import (
	"slices"
	"strings"

	"weft/internal/doctor/machine"
)

const numaTopic = "Processors and closeness"

// numaRules: which processor is near to which device, and which the process has.
var numaRules = []Rule{
	{
		Code: "WEFT-090", Topic: numaTopic, Severity: Slows,
		Title:       "a GPU has no card on its own processor",
		Symptom:     "some ranks of a host are slower than others; `NCCL_TOPO_DUMP_FILE` shows SYS between GPU and NIC",
		Consequence: "its traffic crosses the link between processors, and GPUDirect RDMA is not used over it",
		check: func(x *Exam) (all []Finding) {
			if len(x.nodes()) < 2 {
				return nil
			}
			near := map[int64]bool{}
			for _, p := range x.used() {
				if p.Card.PCI != nil && p.Card.PCI.NUMA >= 0 {
					near[p.Card.PCI.NUMA] = true
				}
			}
			for _, g := range x.GPUs() {
				if len(near) > 0 && g.NUMA >= 0 && !near[g.NUMA] {
					all = append(all, seen(g.Address, "%s is on node %d; the cards in use are on others", g.Address, g.NUMA).mend("%s", x.nearer(g)))
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-091", Topic: numaTopic, Severity: Slows,
		Title:       "the machine does not tell on which processor a card is",
		Symptom:     "NCCL pairs GPUs with far cards; threads run on the wrong processor",
		Consequence: "NCCL takes every card for equally near to every GPU",
		Remedy:      "update the BIOS; in a virtual machine have the hypervisor pass the topology on, or give NCCL_TOPO_FILE",
		check: func(x *Exam) (all []Finding) {
			if len(x.nodes()) < 2 {
				return nil
			}
			for _, p := range x.used() {
				if p.Card.PCI != nil && p.Card.PCI.NUMA < 0 && p.Card.PCI.Physical == "" {
					all = append(all, seen(p.Card.Name, "%s/numa_node is -1, and there are %d nodes", p.Card.PCI.Path, len(x.nodes())))
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-092", Topic: numaTopic, Severity: Slows,
		Title:       "the process may run on one processor only",
		Symptom:     "bandwidth collapses and varies; `top` shows every thread on one CPU",
		Consequence: "NCCL's threads, weft's and the framework's take turns on it",
		Remedy:      "srun --cpu-bind=none or --cpus-per-task=8, mpirun --bind-to none",
		check: func(x *Exam) []Finding {
			list := x.Status("Cpus_allowed_list")
			online := x.Text("/sys/devices/system/cpu/online")
			if list == "" || machine.CPUs(list) > 1 || machine.CPUs(online) < 4 {
				return nil
			}
			return seen("affinity", "/proc/self/status: Cpus_allowed_list %s; online are %s", list, online).one()
		},
	},
	{
		Code: "WEFT-093", Topic: numaTopic, Severity: Advice,
		Title:       "the kernel moves pages between processors by itself",
		Symptom:     "latency has peaks, at any size",
		Consequence: "it takes pages away to see who uses them: each is a fault of the thread that moves data",
		Remedy:      "sysctl -w kernel.numa_balancing=0",
		check: func(x *Exam) []Finding {
			if x.Sysctl("kernel/numa_balancing") != "1" || len(x.nodes()) < 2 {
				return nil
			}
			return seen("kernel.numa_balancing", "/proc/sys/kernel/numa_balancing is 1, and there are %d nodes", len(x.nodes())).one()
		},
	},
	{
		Code: "WEFT-094", Topic: numaTopic, Severity: Advice,
		Title:       "the processors run at their lowest frequency",
		Symptom:     "latency is a multiple of what others have on the same hardware",
		Consequence: "everything that a thread does for a message takes longer",
		Remedy:      "cpupower frequency-set -g performance",
		check: func(x *Exam) []Finding {
			const at = "/sys/devices/system/cpu/cpu0/cpufreq"
			driver := x.Text(at, "scaling_driver")
			if x.Text(at, "scaling_governor") != "powersave" || strings.HasPrefix(driver, "intel_pstate") || strings.HasPrefix(driver, "amd-pstate-epp") {
				return nil // theirs follows the load
			}
			return seen("cpu0", "%s: governor powersave of %s", at, driver).one()
		},
	},
}

// nodes are the machine's NUMA nodes.
func (x *Exam) nodes() []string {
	return slices.DeleteFunc(x.List("/sys/devices/system/node"), func(n string) bool {
		return strings.Trim(strings.TrimPrefix(n, "node"), "0123456789") != "" || n == "node"
	})
}

// nearer says which port of a GPU's processor could serve it.
func (x *Exam) nearer(g *machine.Function) string {
	for _, p := range x.Ports() {
		if p.Card.PCI != nil && p.Card.PCI.NUMA == g.NUMA {
			if p.Active() {
				return "let NCCL_IB_HCA take " + p.String()
			}
			return "bring up " + p.String() + ", which is near"
		}
	}
	return "move a card to a slot of that processor, or leave the GPU out: CUDA_VISIBLE_DEVICES"
}
