package doctor

import (
	"strconv"
	"strings"
)

const memoryTopic = "Memory"

const leastShared = 512 << 20 // bytes of /dev/shm, of which NCCL takes some MiB for each pair of ranks

// memoryRules: the memory of the machine.
var memoryRules = []Rule{
	{
		Code: "WEFT-075", Topic: memoryTopic, Severity: Breaks,
		Title:       "/dev/shm is small",
		Symptom:     "`Error while creating shared memory segment /dev/shm/nccl-...`, `Bus error`",
		Consequence: "NCCL connects the ranks of one host through it: init fails, or a rank dies when it writes",
		Remedy:      "docker run --shm-size=16g ... (or --ipc=host); in Kubernetes an emptyDir with medium: Memory at /dev/shm",
		check: func(x *Exam) []Finding {
			kind, options := x.Mount("/dev/shm")
			for option := range strings.SplitSeq(options, ",") {
				text, ok := strings.CutPrefix(option, "size=")
				if size, known := bytesOf(text); ok && known && kind == "tmpfs" && size < leastShared {
					return seen("/dev/shm", "/proc/mounts: /dev/shm has %s", option).one()
				}
			}
			return nil
		},
	},
	{
		Code: "WEFT-076", Topic: memoryTopic, Severity: Advice,
		Title:       "huge pages hold most of the memory, and nobody uses them",
		Symptom:     "`out of memory` on the host though `free` shows much; the OOM killer ends ranks",
		Consequence: "reserved huge pages serve nothing else: neither NCCL nor weft asks for them",
		Remedy:      "sysctl -w vm.nr_hugepages=0",
		check: func(x *Exam) []Finding {
			info := x.memory()
			reserved, free := info["HugePages_Total"]*info["Hugepagesize"], info["HugePages_Free"]
			if info["MemTotal"] == 0 || reserved < info["MemTotal"]/2 || free < info["HugePages_Total"] {
				return nil
			}
			return seen("vm.nr_hugepages", "/proc/meminfo: HugePages_Total %d of %d kB, all free; MemTotal %d kB", info["HugePages_Total"], info["Hugepagesize"], info["MemTotal"]).one()
		},
	},
	{
		Code: "WEFT-077", Topic: memoryTopic, Severity: Breaks,
		Title:       "memory is not overcommitted",
		Symptom:     "`cudaErrorMemoryAllocation`, `fork: Cannot allocate memory`, with much memory free",
		Consequence: "what CUDA and Go reserve and do not use counts as used: processes fail long before memory is full",
		Remedy:      "sysctl -w vm.overcommit_memory=0",
		check: func(x *Exam) []Finding {
			if x.Sysctl("vm/overcommit_memory") != "2" {
				return nil
			}
			return seen("vm.overcommit_memory", "/proc/sys/vm/overcommit_memory is 2").one()
		},
	},
}

// memory is /proc/meminfo, in its units.
func (x *Exam) memory() map[string]int64 {
	all := map[string]int64{}
	for _, line := range x.Lines("/proc/meminfo") {
		name, rest, _ := strings.Cut(line, ":")
		if f := strings.Fields(rest); len(f) > 0 {
			if n, err := strconv.ParseInt(f[0], 10, 64); err == nil {
				all[name] = n
			}
		}
	}
	return all
}

// bytesOf reads a size of a mount's options.
func bytesOf(text string) (int64, bool) {
	unit := int64(1)
	for i, u := range "kmg" {
		if rest, ok := strings.CutSuffix(strings.ToLower(text), string(u)); ok {
			text, unit = rest, 1<<(10*(i+1))
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n * unit, err == nil
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
