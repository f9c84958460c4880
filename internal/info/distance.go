package info

import (
	"fmt"
	"path"
	"slices"

	"weft/internal/doctor/machine"
)

// Distance is how far a GPU and a NIC are from each other, in NCCL's terms and order.
type Distance string

// From near to far.
const (
	PIX Distance = "PIX" // one PCIe switch joins them
	PXB Distance = "PXB" // several do, below one root port
	PHB Distance = "PHB" // their way goes through the processor
	SYS Distance = "SYS" // and over the link to another processor
)

var distances = []Distance{"LOC", PIX, PXB, PHB, SYS}

// far is a distance as a number.
func (d Distance) far() int { return slices.Index(distances, d) }

// place is where a function is among switches and processors.
type place struct {
	switches []string // folders of those above it, from the nearest on
	numa     int64
}

// placeOf follows sysfs up as NCCL does, two bridges at a time: a switch is one bridge towards the processor and one towards each
// device. Which processor is the last one's word.
func placeOf(m *machine.Machine, f *machine.Function) place {
	at := place{numa: f.NUMA}
	bridges := f.Bridges()
	for i := len(bridges) - 2; i >= 0; i -= 2 {
		at.switches = append(at.switches, bridges[i])
	}
	if n := len(at.switches); n > 0 {
		if numa, ok := m.Int(at.switches[n-1], "numa_node"); ok {
			at.numa = numa
		}
	}
	return at
}

// between is the distance of two places, the switches on the way, and what joins them.
func between(a, b place) (d Distance, via []string, why string) {
	for i, s := range a.switches {
		j := slices.Index(b.switches, s)
		if j < 0 {
			continue
		}
		via = append(append(via, a.switches[:i+1]...), b.switches[:j]...)
		if len(via) == 1 {
			return PIX, via, "the PCIe switch " + path.Base(s) + " joins them"
		}
		return PXB, via, fmt.Sprintf("%d PCIe switches, the highest of them %s, join them", len(via), path.Base(s))
	}
	via = append(append(via, a.switches...), b.switches...)
	if a.numa == b.numa {
		return PHB, via, "both are at " + node(a.numa)
	}
	return SYS, via, fmt.Sprintf("the GPU is at %s, the device at %s", node(a.numa), node(b.numa))
}

func node(n int64) string {
	if n < 0 {
		return "a NUMA node that the machine does not tell"
	}
	return fmt.Sprintf("NUMA node %d", n)
}

// The least and the most, in GB/s, that NCCL counts for the link between two processors; which it is depends on their kind.
const (
	narrowSockets = 6
	wideSockets   = 40
)

// What NCCL takes a PCIe link for that does not tell.
const (
	untoldSpeed = 8 // GT/s
	untoldLanes = 16
)

// linkWidth is what NCCL takes a function's link for, in GB/s: of what the function and the bridge above it could be, the lesser.
func linkWidth(m *machine.Machine, at string) float64 {
	speed, lanes := 0.0, int64(untoldLanes)
	for i, end := range []string{at, path.Dir(at)} {
		if s := machine.Gigatransfers(m.Text(end, "max_link_speed")); s > 0 && (speed == 0 || s < speed) {
			speed = s
		}
		n, _ := m.Int(end, "max_link_width") // where one end does not tell, neither counts
		if i == 0 || n < lanes {
			lanes = n
		}
	}
	if speed == 0 {
		speed = untoldSpeed
	}
	if lanes == 0 {
		lanes = untoldLanes
	}
	perLane := speed * 7.5 / 80
	if speed <= 5 {
		perLane = speed * 6 / 80 // 8 of 10 bits
	}
	return perLane * float64(lanes)
}

// pcie is a link as it runs.
func pcie(f *machine.Function) string {
	if f.Speed == 0 || f.Width == 0 {
		return ""
	}
	return fmt.Sprintf("%g GT/s x%d", f.Speed, f.Width)
}
