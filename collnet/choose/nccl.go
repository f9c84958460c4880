package choose

import (
	"math/bits"
	"time"

	"weft/collnet/schedule"
)

// Protocol is one of NCCL's, by its number.
type Protocol int

const (
	LL Protocol = iota
	LL128
	Simple
	Protocols // how many there are
)

// protocols are what NCCL's cost. The steps are those of NCCL 2.30.7, ncclTunerConstantsDefaults in src/graph/tuning.cc; the
// shares of data follow from the protocols' lines, the parts from buffers and chunks (calcCollChunking in src/enqueue.cc).
var protocols = [Protocols]struct {
	inRing, inTree time.Duration // a step within a node, over NVLink
	ring, tree     time.Duration // a step over the network, beyond the path's latency
	data           float64       // share of the bytes
	part           float64       // bytes that a rank of a tree has before it passes them on
	look           float64       // seconds a byte of the proxy, which looks at the flags of LL's lines; measured 0.5e-9 to 0.7e-9
}{
	LL:     {600 * time.Nanosecond, 600 * time.Nanosecond, 2700 * time.Nanosecond, 5 * time.Microsecond, 0.5, 64 << 10, 0.5e-9},
	LL128:  {1900 * time.Nanosecond, 1250 * time.Nanosecond, 4 * time.Microsecond, 8500 * time.Nanosecond, 120. / 128., 32 << 10, 0},
	Simple: {3400 * time.Nanosecond, 4 * time.Microsecond, 14 * time.Microsecond, 14 * time.Microsecond, 1, 512 << 10, 0},
}

// ahead is how much longer a round of ours takes than a step of NCCL, which has posted its receives long before and does
// not enter Go. Measured over TCP under NCCL 2.28.9, 2 to 8 ranks with an H100: 2 to 6 us.
const ahead = 5 * time.Microsecond

// step is the latency of a step of NCCL.
func (f Fabric) step() time.Duration { return max(f.Path.Latency-ahead, f.Path.Latency/2) }

// RingTime is how long NCCL's ring over all ranks is expected to take for what op is between the nodes. What every
// algorithm of NCCL costs alike, as the launch of a kernel, is left out.
func RingTime(op schedule.Op, ranks, nodes int, f Fabric, p Protocol) time.Duration {
	passes := 1
	if op.Kind == schedule.AllReduce {
		passes = 2
	}
	network, inside := passes*(nodes-1), passes*(ranks-nodes)
	sent := total(op) * float64(passes*(ranks-1)) / float64(max(ranks, 1))
	bandwidth := f.bandwidth()
	if f.cabled() {
		bandwidth *= float64(max(min(f.links(), 2), 1)) // its rings may go both ways
	}
	c := protocols[p]
	hop := c.ring
	if ranks == nodes {
		hop = c.tree // as NCCL has it, too
	}
	return time.Duration(network)*(hop+f.step()) + time.Duration(inside)*c.inRing + seconds(sent/c.data*(1/bandwidth+c.look))
}

// TreeTime is RingTime of NCCL's tree, up and down for an all-reduce, else as PAT goes, one way. A rank passes a part on when
// it has it; further parts follow, up and down at the same time.
func TreeTime(op schedule.Op, ranks, nodes int, f Fabric, p Protocol) time.Duration {
	c := protocols[p]
	passes := 1
	if op.Kind == schedule.AllReduce {
		passes = 2
	}
	hops := passes * (bits.Len(uint(nodes)) - 1)
	bytes := total(op) / c.data
	part := min(bytes, c.part)
	wire := (float64(float64(hops)*part) + float64(float64(passes)*(bytes-part))) * (1/f.bandwidth() + c.look)
	return time.Duration(hops)*(c.tree+f.step()) + time.Duration(passes*(ranks/max(nodes, 1)-1))*c.inTree + seconds(wire)
}
