package nccl

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// pinned is what stands in front of a rank's command, so that it has CPUs of its own, as ranks on hosts of their own have:
// where they share two CPUs, the threads that speak to each other may be on one or on both, and the times of either differ by two.
func (j Job) pinned(rank int) ([]string, error) {
	if !j.Pin {
		return nil, nil
	}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("sched_getaffinity: %w", err)
	}
	if set.Count() < j.Ranks {
		return nil, fmt.Errorf("%d ranks cannot have CPUs of their own: there are %d", j.Ranks, set.Count())
	}
	var all []string
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			all = append(all, fmt.Sprint(cpu))
		}
	}
	own := all[rank*len(all)/j.Ranks : (rank+1)*len(all)/j.Ranks]
	return []string{"taskset", "-c", strings.Join(own, ",")}, nil
}
