package draw

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weft/internal/trace/model"
)

// canvas is a picture that is being drawn.
type canvas struct {
	*Picture
	base      int64
	process   map[*model.Process]*Track // with the tracks of a process
	backwards int                       // arrows that would point back in time
}

// New draws a trace.
func New(t *model.Trace) *Picture {
	c := &canvas{Picture: &Picture{}, process: map[*model.Process]*Track{}}
	for i, p := range t.Processes {
		if at := p.Machine.At(p.First); i == 0 || at < c.base {
			c.base = at
		}
		c.process[p] = &Track{}
	}
	arrows := c.arrows(t)
	for _, p := range t.Processes {
		for _, m := range p.Comms { // those of the process first, in their order
			c.comm(p, m)
		}
		for _, e := range p.Events {
			c.event(p, e)
		}
		c.network(p, arrows)
	}
	for _, p := range inOrder(t) {
		c.process[p].sort()
		c.Processes = append(c.Processes, &Process{Name: name(t, p), Labels: labels(p), Tracks: c.process[p].Tracks})
	}
	if c.backwards > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%d messages have no arrow: by the clocks, whose error is larger than a message takes, they arrived before they left", c.backwards))
	}
	return c.Picture
}

// at is a process's time in the picture's.
func (c *canvas) at(p *model.Process, t uint64) uint64 {
	return uint64(max(0, p.Machine.At(t)-c.base))
}

// lead is the largest communicator that the process has a rank in, and its ranks there.
func lead(t *model.Trace, p *model.Process) (of *model.Communicator, ranks []int32) {
	for _, c := range t.Communicators {
		for _, m := range c.Comms {
			if m.Process == p {
				ranks = append(ranks, m.Rank)
			}
		}
		if len(ranks) > 0 {
			return c, ranks
		}
	}
	return nil, nil
}

func inOrder(t *model.Trace) []*model.Process {
	place := map[*model.Communicator]int{}
	for i, c := range t.Communicators {
		if c.ID != 0 {
			place[c] = i + 1
		}
	}
	type key struct{ comm, rank int }
	keys := map[*model.Process]key{}
	for _, p := range t.Processes {
		of, ranks := lead(t, p)
		k := key{len(place) + 1, 0}
		if of != nil {
			k.rank = int(ranks[0])
			if place[of] > 0 {
				k.comm = place[of]
			}
		} else {
			k.comm++
		}
		keys[p] = k
	}
	all := slices.Clone(t.Processes)
	slices.SortStableFunc(all, func(a, b *model.Process) int {
		return cmp.Or(cmp.Compare(keys[a].comm, keys[b].comm), cmp.Compare(keys[a].rank, keys[b].rank))
	})
	return all
}

func name(t *model.Trace, p *model.Process) string {
	of, ranks := lead(t, p)
	switch {
	case of == nil:
		return p.Name()
	case of.ID == 0:
		return fmt.Sprintf("rank %d (%s)", ranks[0], p.Name())
	case len(ranks) == 1:
		return fmt.Sprintf("rank %d of %s (%s)", ranks[0], of.Label(), p.Name())
	}
	texts := make([]string, len(ranks))
	for i, r := range ranks {
		texts[i] = fmt.Sprint(r)
	}
	return fmt.Sprintf("ranks %s of %s (%s)", strings.Join(texts, ", "), of.Label(), p.Name())
}

// labels say what the process's part lacks.
func labels(p *model.Process) []string {
	if !p.Loss.Any() {
		return nil
	}
	return []string{fmt.Sprintf("lost: %v", p.Loss)}
}
