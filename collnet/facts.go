package collnet

import (
	"math"
	"slices"
	"time"

	"weft/collnet/choose"
)

// facts are what a rank tells all others, so that everybody computes with the same.
type facts struct {
	path   choose.Path // to the next rank, and its gap between messages to all ranks at once
	cabled []bool      // by rank; RDMA joins the two
}

// rowOf is where the byte of each rank begins, behind latency, gap and bandwidth, of 8 bytes each.
const rowOf = 24

func factsSize(n int) int { return rowOf + (n+7)/8*8 }

// put writes f, of which b has factsSize.
func (f facts) put(b []byte) {
	le.PutUint64(b, uint64(f.path.Latency))
	le.PutUint64(b[8:], uint64(f.path.Gap))
	le.PutUint64(b[16:], math.Float64bits(f.path.Bandwidth))
	for r, is := range f.cabled {
		if b[rowOf+r] = 0; is {
			b[rowOf+r] = 1
		}
	}
}

// readFacts are those of one of n ranks.
func readFacts(b []byte, n int) facts {
	f := facts{
		path:   choose.Path{Latency: time.Duration(le.Uint64(b)), Gap: time.Duration(le.Uint64(b[8:])), Bandwidth: math.Float64frombits(le.Uint64(b[16:]))},
		cabled: make([]bool, n),
	}
	for r := range f.cabled {
		f.cabled[r] = b[rowOf+r] == 1
	}
	return f
}

// fabricOf computes from what all have told; the median counts. Two ranks are cabled if both say so. Paths that are all alike
// are those of a network, and no cables between two; and where not all ranks are known to each other (mesh), none counts.
func fabricOf(all []facts, mesh bool) choose.Fabric {
	n := len(all)
	var latencies, gaps []time.Duration
	var bandwidths []float64
	f := choose.Fabric{N: n}
	alike := true
	for r, a := range all {
		latencies = append(latencies, a.path.Latency)
		gaps = append(gaps, a.path.Gap)
		bandwidths = append(bandwidths, a.path.Bandwidth)
		f.Copied = f.Copied || !a.cabled[(r+1)%n]
		row := make([]bool, n)
		for o, b := range all {
			row[o] = a.cabled[o] && b.cabled[r]
			alike = alike && (row[o] || o == r)
		}
		f.Cabled = append(f.Cabled, row)
	}
	slices.Sort(latencies)
	slices.Sort(gaps)
	slices.Sort(bandwidths)
	f.Path = choose.Path{Latency: latencies[n/2], Gap: gaps[n/2], Bandwidth: bandwidths[n/2]}
	if alike || !mesh {
		f.Cabled = nil
	}
	return f
}
