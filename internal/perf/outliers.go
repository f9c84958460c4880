package perf

import (
	"cmp"
	"fmt"
	"slices"
)

// A port is told of when the median of its pairs falls short of the median of all ports by this much, and a pair when it falls short
// of what both its ports reach with others.
const short = 0.8

// told is a sentence, and how far behind what it is about is.
type told struct {
	share float64
	text  string
}

// outliers are sentences about ports and pairs that fall behind, the worst first.
func (r *Report) outliers() (texts []string) {
	var all []told
	for _, size := range r.sizes() {
		all = append(all, r.outliersOf(size)...)
	}
	slices.SortFunc(all, func(a, b told) int { return cmp.Or(cmp.Compare(a.share, b.share), cmp.Compare(a.text, b.text)) })
	for _, t := range all {
		texts = append(texts, t.text)
	}
	return texts
}

func (r *Report) outliersOf(size int64) (all []told) {
	cells := map[Pair]float64{} // more is better
	sends, receives := map[Port][]float64{}, map[Port][]float64{}
	for _, row := range r.Rows {
		if row.Library != 0 || row.Bytes != size || row.Others {
			continue
		}
		v := row.Value
		if r.Test == Latency {
			v = 1 / max(v, 1e-9)
		}
		cells[row.Pair] = v
		sends[row.From], receives[row.To] = append(sends[row.From], v), append(receives[row.To], v)
	}
	lateSends, lateReceives := behind(sends), behind(receives)
	ports, _ := r.ports()
	for _, p := range ports {
		sent, received := lateSends[p], lateReceives[p]
		switch {
		case sent > 0 && received > 0:
			all = append(all, told{min(sent, received), fmt.Sprintf("%s %s", r.portName(p), r.share("carries", min(sent, received), "its peers do", size))})
		case sent > 0:
			all = append(all, told{sent, fmt.Sprintf("%s %s", r.portName(p), r.share("sends", sent, "its peers do", size))})
		case received > 0:
			all = append(all, told{received, fmt.Sprintf("%s %s", r.portName(p), r.share("receives", received, "its peers do", size))})
		}
	}
	for p, v := range cells {
		if lateSends[p.From] > 0 || lateReceives[p.To] > 0 || len(sends[p.From]) < 3 || len(receives[p.To]) < 3 {
			continue
		}
		if share := v / min(median(sends[p.From]), median(receives[p.To])); share < short {
			all = append(all, told{share, fmt.Sprintf("%s to %s %s", r.portName(p.From), r.portName(p.To), r.share("carries", share, "both do with others", size))})
		}
	}
	return all
}

// behind are the ports whose median falls short of that of all ports, and how much of it they reach.
func behind(values map[Port][]float64) map[Port]float64 {
	var each []float64
	for _, v := range values {
		each = append(each, median(v))
	}
	usual, late := median(each), map[Port]float64{}
	for p, v := range values {
		if share := median(v) / usual; len(values) > 2 && share < short {
			late[p] = max(share, 1e-9)
		}
	}
	return late
}

// share words how far a port or pair is behind.
func (r *Report) share(does string, share float64, others string, size int64) string {
	if r.Test == Latency {
		way := map[string]string{"sends": "sends ", "receives": "receives "}[does]
		return fmt.Sprintf("takes %.1f times as long as %s (%s%s)", 1/share, others, way, sizeName(size))
	}
	return fmt.Sprintf("%s %.0f %% of what %s (%s)", does, 100*share, others, sizeName(size))
}

func (r *Report) sizes() []int64 {
	var all []int64
	for _, row := range r.Rows {
		all = append(all, row.Bytes)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// sizeName is 64 KiB for 65536.
func sizeName(n int64) string {
	for i, unit := range []string{"GiB", "MiB", "KiB"} {
		if one := int64(1) << (30 - 10*i); n >= one && n%one == 0 {
			return fmt.Sprintf("%d %s", n/one, unit)
		}
	}
	return fmt.Sprintf("%d B", n)
}
