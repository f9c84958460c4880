package model

import (
	"cmp"
	"slices"

	"weft/transport/record/format"
)

// versionWithIdentity is the first of NCCL's profiler tables whose init is told
// which communicator it is for.
const versionWithIdentity = 4

func (p *Process) comm(r format.Record) {
	c := &Comm{Process: p, Number: r.Comm, Rank: r.Rank, Version: uint32(r.C >> 32), Known: true, From: r.Time, To: Never}
	c.Of = &Communicator{ID: r.A, Name: p.Text(r.B), Ranks: count(r.B >> 32), Nodes: count(r.C & 0xffffffff)}
	if c.Version < versionWithIdentity && c.Of.ID == 0 {
		c.Rank, c.Of.Ranks = -1, 0 // what the host left out is zero
	}
	p.Comms = append(p.Comms, c)
}

func count(v uint64) int { return int(int32(v)) }

// communicators gives the events theirs, and joins those of one identity.
func (t *Trace) communicators() {
	joined := map[uint64]*Communicator{}
	for _, p := range t.Processes {
		p.times()
		of := p.find()
		for _, e := range p.Events {
			if e.Comm == 0 {
				continue
			}
			e.In = of(e.Comm, e.Time)
			if e.In.Rank < 0 {
				e.In.Rank = e.Rank
			}
		}
		for _, c := range p.Comms {
			if c.Of.ID == 0 {
				t.Communicators = append(t.Communicators, c.Of)
			} else if first := joined[c.Of.ID]; first == nil {
				joined[c.Of.ID] = c.Of
				t.Communicators = append(t.Communicators, c.Of)
			} else {
				c.Of = first
			}
			c.Of.Comms = append(c.Of.Comms, c)
		}
	}
	for _, c := range t.Communicators {
		slices.SortStableFunc(c.Comms, func(a, b *Comm) int { return cmp.Compare(a.Rank, b.Rank) })
	}
	slices.SortStableFunc(t.Communicators, func(a, b *Communicator) int {
		return cmp.Or(cmp.Compare(b.Ranks, a.Ranks), cmp.Compare(a.Comms[0].Process.Index, b.Comms[0].Process.Index))
	})
}

// times ends each communicator of the process where its end was recorded or its
// number was given again, and drops ends without a beginning.
func (p *Process) times() {
	slices.SortStableFunc(p.Comms, func(a, b *Comm) int { return cmp.Compare(a.From, b.From) })
	last := map[uint16]*Comm{}
	p.Comms = slices.DeleteFunc(p.Comms, func(c *Comm) bool {
		before := last[c.Number]
		if before != nil && before.To == Never {
			before.To = c.From
		}
		if c.Known {
			last[c.Number] = c
		}
		return !c.Known
	})
}

// find returns the communicator of a number at a time. Where its record is gone,
// as it is where the file was overwritten, one stands for it.
func (p *Process) find() func(number uint16, at uint64) *Comm {
	known := map[uint16][]*Comm{}
	for _, c := range p.Comms {
		known[c.Number] = append(known[c.Number], c)
	}
	lost := map[uint16]*Comm{}
	return func(number uint16, at uint64) *Comm {
		i, _ := slices.BinarySearchFunc(known[number], at, func(c *Comm, at uint64) int {
			if c.From <= at {
				return -1
			}
			return 1
		})
		if i > 0 {
			return known[number][i-1]
		}
		c := lost[number]
		if c == nil {
			c = &Comm{Process: p, Number: number, Rank: -1, From: p.First, To: Never, Of: &Communicator{}}
			lost[number] = c
			p.Comms = append(p.Comms, c)
		}
		return c
	}
}
