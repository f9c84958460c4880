// Package draw lays out a trace as viewers show one: processes with tracks, slices
// on them, and arrows between slices.
package draw

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"
)

// Picture is a whole trace. Its time begins with 0, ns.
type Picture struct {
	Processes []*Process
	Arrows    int
	Notes     []string // what could not be drawn
}

// Process is a rank, in the order of ranks.
type Process struct {
	Name   string
	Labels []string
	Tracks []*Track
}

// Track has slices, tracks below it, or both.
type Track struct {
	Name   string
	Slices []Slice // may overlap
	Tracks []*Track

	below map[string]*Track
}

// Slice is something that takes time.
type Slice struct {
	Name     string
	Category string
	From, To uint64
	Args     []Arg
	Out      uint64   // the arrow that leaves it, 0: none
	In       []uint64 // arrows that reach it
	Inner    []Slice  // one after the other, within it
}

// Arg is told of a slice: a string, uint64, int64 or bool.
type Arg struct {
	Name  string
	Value any
}

// track finds or makes the one of that name.
func (t *Track) track(name string) *Track {
	if t.below[name] == nil {
		if t.below == nil {
			t.below = map[string]*Track{}
		}
		t.below[name] = &Track{Name: name}
		t.Tracks = append(t.Tracks, t.below[name])
	}
	return t.below[name]
}

// sort puts the tracks below a communicator in the order of what causes what, and
// channels in that of their numbers.
func (t *Track) sort() {
	slices.SortStableFunc(t.Tracks, func(a, b *Track) int {
		ca, na := place(a.Name)
		cb, nb := place(b.Name)
		return cmp.Or(cmp.Compare(ca, cb), cmp.Compare(na, nb))
	})
	for _, b := range t.Tracks {
		b.sort()
	}
}

func place(name string) (class, number int) {
	if _, err := fmt.Sscanf(name, "channel %d", &number); err == nil {
		return 9, number
	}
	for i, first := range []string{"communicator", "no communicator", "calls", "collectives", "sends and receives", "copy engines", "steps"} {
		if strings.HasPrefix(name, first) {
			return i, 0
		}
	}
	return 10, 0
}

func (t *Track) add(s Slice) { t.Slices = append(t.Slices, s) }

// Lanes are the track's slices such that none of a lane overlaps another.
func (t *Track) Lanes() [][]Slice {
	slices.SortStableFunc(t.Slices, func(a, b Slice) int { return cmp.Compare(a.From, b.From) })
	var lanes [][]Slice
	var free ends
	for _, s := range t.Slices {
		if len(free) > 0 && free[0].at <= s.From {
			i := free[0].lane
			lanes[i] = append(lanes[i], s)
			free[0].at = s.To
			heap.Fix(&free, 0)
			continue
		}
		heap.Push(&free, end{s.To, len(lanes)})
		lanes = append(lanes, []Slice{s})
	}
	return lanes
}

// Sends reports whether arrows leave from slices of a lane.
func Sends(lane []Slice) bool {
	return slices.ContainsFunc(lane, func(s Slice) bool { return s.Out != 0 })
}

// ends are the lanes, the one that is free first in front.
type ends []end

type end struct {
	at   uint64
	lane int
}

func (e ends) Len() int { return len(e) }
func (e ends) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].lane < e[j].lane
}
func (e ends) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)   { *e = append(*e, x.(end)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
