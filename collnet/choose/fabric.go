// Package choose says which algorithm a collective takes, and how long that and
// NCCL's rings and trees are expected to take. Its functions are pure: ranks that know the
// same fabric choose the same.
package choose

import (
	"cmp"
	"slices"
	"time"

	"weft/collnet/schedule"
)

// Path is what was measured between two ranks.
type Path struct {
	Latency   time.Duration // of a small message, one way
	Gap       time.Duration // that each further message takes which a rank sends and receives at the same time
	Bandwidth float64       // bytes per second
}

// Fabric is what joins the ranks; all ranks know the same.
type Fabric struct {
	N      int
	Cabled [][]bool // which ranks a fast path joins, each by a cable of its own; none at all: a network in which all are alike
	Path   Path
	Copied bool  // the CPU copies the bytes, as for TCP, on the way of some rank to the next
	Chunk  int64 // bytes of a chunk; zero: 512 KiB
}

func (f Fabric) chunk() float64 { return float64(cmp.Or(f.Chunk, 512<<10)) }

// TracksOf is how many chunks are in flight at a time. Each costs connections to
// every peer, of which many ranks have few again.
func TracksOf(ranks int) int {
	switch {
	case ranks <= 8 || ranks > mostMeshed:
		return 4
	case ranks <= 32:
		return 2
	}
	return 1
}

// cabled reports whether any ranks are.
func (f Fabric) cabled() bool {
	return slices.ContainsFunc(f.Cabled, func(row []bool) bool { return slices.Contains(row, true) })
}

func (f Fabric) joins(a, b int) bool { return f.Cabled[a][b] && f.Cabled[b][a] }

// carries reports whether an algorithm uses cables only.
func (f Fabric) carries(a schedule.Algorithm, order []int) bool {
	for r := range f.N {
		for _, p := range schedule.Peers(a, f.N, r, order) {
			if !f.joins(r, p) {
				return false
			}
		}
	}
	return true
}

// links are the cables of the rank that has the fewest.
func (f Fabric) links() int {
	fewest := f.N
	for a := range f.N {
		n := 0
		for b := range f.N {
			if a != b && f.joins(a, b) {
				n++
			}
		}
		fewest = min(fewest, n)
	}
	return fewest
}
