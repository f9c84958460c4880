package choose

import (
	"time"

	"weft/collnet/schedule"
)

// protocol is one of NCCL's: what a step of its ring costs within a node (NVLink)
// and over the network, beyond the path's latency, and what of the bytes is data.
// The steps are those of NCCL 2.30.7, ncclTunerConstantsDefaults in
// src/graph/tuning.cc; the shares of data follow from the protocols' lines.
type protocol struct {
	inside, network time.Duration
	data            float64
}

var protocols = []protocol{
	{600 * time.Nanosecond, 2700 * time.Nanosecond, 0.5},          // LL: 4 of 8 bytes
	{1900 * time.Nanosecond, 4000 * time.Nanosecond, 120. / 128.}, // LL128
	{3400 * time.Nanosecond, 14 * time.Microsecond, 1},            // Simple
}

// RingTime is how long NCCL's ring over all ranks is expected to take for what op
// is between the nodes, with the protocol that suits it best. What every
// algorithm of NCCL costs alike, as the launch of a kernel, is left out.
func RingTime(op schedule.Op, ranks, nodes int, f Fabric) time.Duration {
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
	var best time.Duration = -1
	for _, p := range protocols {
		t := time.Duration(network)*(p.network+f.Path.Latency) + time.Duration(inside)*p.inside + seconds(sent/bandwidth/p.data)
		if best < 0 || t < best {
			best = t
		}
	}
	return best
}

// What NCCL does around an operation of ours.
const (
	handover = 14 * time.Microsecond  // assumed: from the GPU to the proxy and back, as a network step of Simple
	chained  = 2800 * time.Nanosecond // NCCL 2.30.7: a step of CollNetChain over NVLink
)

// OffloadTime is how long NCCL's collNet over ours is expected to take, to be held against RingTime.
func OffloadTime(op schedule.Op, ranks, nodes int, f Fabric) time.Duration {
	c := Of(f)
	a, _ := c.Pick(op)
	local := ranks/max(nodes, 1) - 1
	return handover + time.Duration(2*local)*chained + Time(op, a, c.fabric)
}
