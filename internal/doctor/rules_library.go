package doctor

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"weft/internal/doctor/machine"
)

const libraryTopic = "Libraries"

// libraryRules: what is loaded besides the plugin.
var libraryRules = []Rule{
	{
		Code: "WEFT-014", Topic: libraryTopic, Severity: Advice,
		Title:       "several versions of NCCL are installed",
		Symptom:     "`ncclInvalidUsage`, or a log that names another `NCCL version` than expected",
		Consequence: "which one a job takes depends on how it was started; ranks with different versions fail at init or later",
		Remedy:      "look for `NCCL version` in the log of every rank (NCCL_DEBUG=VERSION), and keep one: pip install --upgrade nvidia-nccl-cu12==VERSION, or apt-mark hold libnccl2",
		check: func(x *Exam) []Finding {
			var versions, where []string
			for _, n := range x.NCCLs() {
				if n.Version != "" && !slices.Contains(versions, n.Version) {
					versions = append(versions, n.Version)
					where = append(where, fmt.Sprintf("%s in %s (%s)", n.Version, n.Path, n.Owner))
				}
			}
			if len(versions) < 2 {
				return nil
			}
			return seen("libnccl", "%s", strings.Join(where, "; ")).one()
		},
	},
	{
		Code: "WEFT-015", Topic: libraryTopic, Severity: Breaks,
		Title:       "libibverbs is not installed, and there are RDMA cards",
		Symptom:     "`NET/IB : No device found`; in a container everything goes over TCP",
		Consequence: "neither weft nor NCCL can use the cards: everything goes over TCP",
		Remedy:      "apt-get install -y libibverbs1 ibverbs-providers (dnf install -y libibverbs), in the container's image too",
		check: func(x *Exam) []Finding {
			if len(x.Cards()) == 0 || x.verbs() != nil {
				return nil
			}
			return seen("libibverbs.so.1", "there is %s; libibverbs.so.1%s", cardNames(x.Cards()), x.notThere()).one()
		},
	},
	{
		Code: "WEFT-016", Topic: libraryTopic, Severity: Breaks,
		Title:       "libibverbs has no provider for a card",
		Symptom:     "`libibverbs: Warning: no userspace device-specific driver found for /sys/class/infiniband_verbs/uverbs0`",
		Consequence: "the card does not exist for weft and NCCL",
		Remedy:      "apt-get install -y ibverbs-providers, of the same rdma-core or MLNX_OFED as libibverbs1",
		check:       missingProvider,
	},
	{
		Code: "WEFT-018", Topic: libraryTopic, Severity: Advice,
		Title:   "an installed NCCL has a known fault",
		Symptom: "hangs or crashes at the end of a job, or after a network error",
		Remedy:  "pip install --upgrade nvidia-nccl-cu12, or install a newer libnccl2",
		check: func(x *Exam) (all []Finding) {
			for _, n := range x.NCCLs() {
				if fault := ncclFaults[n.Version]; fault != "" {
					f := seen(n.Path, "NCCL %s in %s", n.Version, n.Path)
					f.Consequence = fault
					all = append(all, f)
				}
			}
			return all
		},
		Consequence: "2.23.4 and 2.24.3 can hang in ncclCommAbort, 2.26.6 reports no asynchronous error, 2.28.3 can crash with collNet",
	},
}

// ncclFaults are of NCCL itself, over any network, and were seen.
var ncclFaults = map[string]string{
	"2.23.4": "ncclCommAbort can hang while operations are under way, and the log grows without end once a network call has failed",
	"2.24.3": "ncclCommAbort can hang while operations are under way, and the log grows without end once a network call has failed",
	"2.26.6": "ncclCommGetAsyncError reports nothing when a rank was killed: only a watchdog ends the job",
	"2.28.3": "a communicator's end crashes where a collNet plugin has no device",
}

// verbs is libibverbs as weft opens it; nil: it is not there.
func (x *Exam) verbs() *machine.Library {
	for _, name := range []string{"libibverbs.so.1", "libibverbs.so"} {
		if l := x.Dlopen(name); l != nil {
			return l
		}
	}
	return nil
}

func cardNames(cards []*machine.Card) string {
	var names []string
	for _, c := range cards {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}

// providers are the names that rdma-core gives to the provider of a kernel driver.
var providers = map[string]string{
	"mlx5_core": "mlx5", "mlx4_core": "mlx4", "bnxt_en": "bnxt_re", "bnxt_re": "bnxt_re", "irdma": "irdma", "ice": "irdma", "efa": "efa",
	"hns3": "hns", "ionic": "ionic", "qede": "qedr", "cxgb4": "cxgb4",
}

// missingProvider looks for libNAME-rdmavN.so beside libibverbs; libmlx5 and its like are libraries of their own, too.
func missingProvider(x *Exam) (all []Finding) {
	verbs := x.verbs()
	if verbs == nil {
		return nil
	}
	var there []string
	folders := append([]string{path.Join(path.Dir(verbs.Real), "libibverbs")}, path.Dir(verbs.Real))
	for _, dir := range machine.LibraryFolders() {
		folders = append(folders, path.Join(dir, "libibverbs"))
	}
	for _, dir := range folders {
		there = append(there, x.List(dir)...)
	}
	told := map[string]bool{}
	for _, c := range x.Cards() {
		if c.PCI == nil {
			continue
		}
		name := providers[c.PCI.Driver]
		if name == "" || told[name] || slices.ContainsFunc(there, func(f string) bool { return strings.HasPrefix(f, "lib"+name+"-rdmav") }) {
			continue
		}
		told[name] = true
		all = append(all, seen(c.Name, "%s is driven by %s; lib%s-rdmav*.so is not in %s", c.Name, c.PCI.Driver, name, folders[0]))
	}
	return all
}
