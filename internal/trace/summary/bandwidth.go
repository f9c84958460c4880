package summary

import "strings"

// Traffic is the size of an operation as nccl-tests shows it: that of a call whose
// count is for one rank is for all of them.
func Traffic(fn string, bytes uint64, ranks int) uint64 {
	if eachForAll(fn) {
		return bytes * uint64(max(1, ranks))
	}
	return bytes
}

// Factor makes a size over a time the bandwidth of a link, as nccl-tests does; 0
// where the number of ranks is not known.
func Factor(fn string, ranks int) float64 {
	n, once := float64(ranks), eachForAll(fn)
	switch {
	case !once && !strings.EqualFold(fn, "allreduce"):
		return 1
	case ranks < 1:
		return 0
	case once:
		return (n - 1) / n
	}
	return 2 * (n - 1) / n
}

func eachForAll(fn string) bool {
	switch strings.ToLower(fn) {
	case "allgather", "allgatherv", "reducescatter", "alltoall", "gather", "scatter":
		return true
	}
	return false
}
