package choose

import (
	"math"
	"time"

	"weft/collnet/schedule"
)

// What NCCL does around an operation of ours.
const (
	// From the GPU to the proxy and back, beyond the 7 us of a launch that a ring has too. Measured under NCCL 2.28.9 with
	// an H100, 2, 4 and 8 ranks over TCP: 20 to 32 us.
	handover = 24 * time.Microsecond
	chained  = 2800 * time.Nanosecond // NCCL 2.30.7: a step of CollNetChain over NVLink
)

// OffloadTime is how long NCCL's collNet over ours is expected to take, to be held against RingTime and TreeTime. fitted
// says that NCCL asks us for the size of its chunks. All-gathers and reduce-scatters count as one operation.
func (c Choices) OffloadTime(op schedule.Op, ranks, nodes int, fitted bool) time.Duration {
	local := ranks / max(nodes, 1)
	one, pieces := op, 1.0
	if op.Kind == schedule.AllReduce {
		size, n := piecesOf(total(op), max(local, 1), fitted)
		one.Count = int64(math.Ceil(size / float64(op.Elem)))
		op.Count, pieces = one.Count*int64(n), n
	}
	a, _ := c.Pick(one)
	if pieces > 1 {
		c.fabric.Chunk = one.Count * int64(one.Elem)
	}
	return handover + time.Duration(2*(local-1))*chained + Time(op, a, c.fabric)
}

// piecesOf is how CollNetChain cuts an all-reduce, for each piece of which NCCL calls collNet: a chunk of each channel,
// all of it, whatever is data (NCCL 2.30.7, topoGetAlgoInfo and calcCollChunking in src/enqueue.cc, and coll_net.cc). The
// channels are those of one device and one GPU a node; others have more. depth is how many ranks of a node are chained.
func piecesOf(bytes float64, depth int, fitted bool) (size, n float64) {
	const (
		channels = 2
		threads  = 640 << 9 // bytes for which a channel is worth it
		most     = 256 << 10
		grain    = 512
	)
	used := min(max(math.Floor(bytes/threads), 1), channels)
	chunk := float64(most)
	for _, rule := range []struct{ fewest, least float64 }{{64, 128 << 10}, {8, 64 << 10}, {1, 32 << 10}} {
		for chunk > rule.least && math.Floor(bytes/(used*chunk)) < float64(depth)*rule.fewest {
			chunk /= 2
		}
	}
	if fitted {
		chunk = min(chunk, max(math.Ceil(bytes/used/grain), 1)*grain)
	}
	size = used * chunk
	return size, max(math.Ceil(bytes/size), 1)
}
