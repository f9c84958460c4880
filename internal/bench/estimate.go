package main

import (
	"fmt"
	"math"

	"weft/internal/rounds"
)

// estimate is the median of what rounds gave, and the bounds of the median that it is of (95 %).
type estimate struct {
	median, low, high float64
	rounds            int
}

func estimateOf(v []float64) estimate {
	low, high := rounds.Interval(v)
	return estimate{rounds.Median(v), low, high, len(v)}
}

// ratioOf is what a is beside b in the same round, more what it is beyond it.
func ratioOf(a, b []float64) estimate { return estimateOf(rounds.Ratios(a, b)) }

func more(a, b []float64) estimate {
	var d []float64
	for i := range a {
		d = append(d, a[i]-b[i])
	}
	return estimateOf(d)
}

// in is the estimate in other units.
func (e estimate) in(scale float64) estimate {
	return estimate{e.median * scale, e.low * scale, e.high * scale, e.rounds}
}

// Format writes median and bounds as fmt would write each of them.
func (e estimate) Format(s fmt.State, verb rune) {
	one := fmt.FormatString(s, verb)
	fmt.Fprintf(s, one, e.median)
	if math.IsInf(e.low, 0) {
		fmt.Fprintf(s, " (too few rounds)")
		return
	}
	fmt.Fprintf(s, " ("+one+" to "+one+")", e.low, e.high)
}

// judge says whether it is at most a limit, which has a name, or that this cannot be told.
func (e estimate) judge(limit float64, name string) string {
	switch {
	case e.high <= limit:
		return "within " + name
	case e.low > limit:
		return "MORE than " + name
	}
	return "whether within " + name + " cannot be told from noise here"
}

// judgeRatio is judge of a ratio that may be a part above 1; where that part is less than can be told, it says how much can, and
// after how many rounds the part could be.
func (e estimate) judgeRatio(part float64) string {
	said := e.judge(1+part, fmt.Sprintf("%.1f %%", 100*part))
	if half := (e.high - e.low) / 2; e.high > 1+part && e.low <= 1+part && half > part && !math.IsInf(half, 0) {
		said += fmt.Sprintf("; resolved here: %.2f %%; %.1f %% takes about %.0f rounds", 100*half, 100*part, math.Ceil(float64(e.rounds)*half*half/part/part))
	}
	return said
}
