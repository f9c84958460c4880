// Package clock finds by how much the clocks of machines differ, from messages
// between them.
package clock

import (
	"cmp"
	"slices"
)

// Machine has a clock of its own: what it and the wall clock showed at one moment, ns.
type Machine struct{ Mono, Real uint64 }

// Basis is where an offset comes from.
type Basis string

const (
	Reference Basis = "reference"       // the others' times are made this machine's
	Messages  Basis = "messages"        // both ways, so that the error is bounded
	Wall      Basis = "realtime clocks" // the error is theirs, and not known
)

// Offset makes a time of its machine one of the reference.
type Offset struct {
	Add   int64
	Bound uint64 // with Messages, the error is no larger, ns
	Basis Basis
	Via   int // the machine that it was compared with
	// Crossed says that messages contradict each other by so much: one clock
	// runs faster than the other.
	Crossed uint64
}

// Clocks gathers what messages say of them.
type Clocks struct {
	machines []Machine
	pairs    map[[2]int]*pair
}

// pair bounds by how much more must be added to the second clock than to the first.
type pair struct {
	least, most       int64
	forward, backward bool
}

// New knows of no message yet.
func New(machines []Machine) *Clocks {
	return &Clocks{machines: machines, pairs: map[[2]int]*pair{}}
}

// Message left one machine no earlier than left and was on the other by arrived:
// it cannot arrive before it leaves.
func (c *Clocks) Message(from, to int, left, arrived uint64) {
	if from == to {
		return
	}
	p := c.pairs[[2]int{min(from, to), max(from, to)}]
	if p == nil {
		p = &pair{}
		c.pairs[[2]int{min(from, to), max(from, to)}] = p
	}
	if from < to {
		if least := int64(left - arrived); !p.forward || least > p.least {
			p.forward, p.least = true, least
		}
		return
	}
	if most := int64(arrived - left); !p.backward || most < p.most {
		p.backward, p.most = true, most
	}
}

// edge is a pair with messages both ways.
type edge struct {
	a, b    int
	add     int64 // for b, more than for a
	half    uint64
	crossed uint64
}

func (c *Clocks) edges() []edge {
	var all []edge
	for k, p := range c.pairs {
		if !p.forward || !p.backward {
			continue
		}
		e := edge{a: k[0], b: k[1], add: p.least + (p.most-p.least)/2}
		if p.most >= p.least {
			e.half = uint64(p.most-p.least+1) / 2
		} else {
			e.crossed = uint64(p.least - p.most)
			e.half = (e.crossed + 1) / 2
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(x, y edge) int {
		return cmp.Or(cmp.Compare(x.crossed, y.crossed), cmp.Compare(x.half, y.half), cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
	})
	return all
}

// Align makes machine 0 the reference. The others follow over the pairs whose
// bounds are narrowest; those that no messages join to it, by their wall clocks.
func (c *Clocks) Align() []Offset {
	out := make([]Offset, len(c.machines))
	edges := c.edges()
	for root := range c.machines {
		if out[root].Basis != "" {
			continue
		}
		out[root] = Offset{Basis: Reference}
		if root > 0 {
			m, ref := c.machines[root], c.machines[0]
			out[root] = Offset{Basis: Wall, Add: int64(m.Real-m.Mono) - int64(ref.Real-ref.Mono)}
		}
		follow(out, edges)
	}
	return out
}

// follow reaches what edges join to those that have an offset, the narrowest first.
func follow(out []Offset, edges []edge) {
	for again := true; again; {
		again = false
		for _, e := range edges {
			from, to, add := e.a, e.b, e.add
			if out[from].Basis == "" {
				from, to, add = e.b, e.a, -e.add
			}
			if out[from].Basis == "" || out[to].Basis != "" {
				continue
			}
			o := Offset{Add: out[from].Add + add, Bound: out[from].Bound + e.half, Basis: Messages, Via: from, Crossed: max(e.crossed, out[from].Crossed)}
			if out[from].Basis == Wall || out[from].Basis == Messages && out[out[from].Via].Basis == Wall {
				o.Basis = Wall // of the machine that it follows
			}
			out[to] = o
			again = true
			break
		}
	}
}
