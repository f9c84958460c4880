package summary

import (
	"cmp"
	"slices"

	"weft/internal/trace/model"
	"weft/transport/record/format"
)

// Communicator is one across processes.
type Communicator struct {
	Label      string      `json:"label"`
	ID         uint64      `json:"id"`    // 0: the host gives none
	Ranks      int         `json:"ranks"` // 0: not known
	Recorded   []int32     `json:"recorded"`
	Operations []Operation `json:"operations"`
	Waits      []Waits     `json:"waits"`
	Skew       *Skew       `json:"skew,omitempty"`
}

// Count is how many operations there are, on all ranks together.
func (c Communicator) Count() int {
	n := 0
	for _, o := range c.Operations {
		n += o.Count
	}
	return n
}

// Operation is what collectives or messages of one kind and size took, on all ranks.
type Operation struct {
	Func      string  `json:"func"`
	Bytes     uint64  `json:"bytes"`
	Algorithm string  `json:"algorithm,omitempty"`
	Protocol  string  `json:"protocol,omitempty"`
	Count     int     `json:"count"`    // on all ranks together
	Captured  int     `json:"captured"` // of those: into graphs, which are not timed
	Untimed   int     `json:"untimed"`  // of those: nothing tells when they ended
	TimedBy   string  `json:"timed_by"` // kernel, proxy
	P50       uint64  `json:"p50"`
	P99       uint64  `json:"p99"`
	Bus       float64 `json:"bus_bandwidth"` // GB/s at P50, by the formulas of nccl-tests; 0: not known
}

func (r *Report) communicator(c *model.Communicator, events map[*model.Comm][]*model.Event) Communicator {
	out := Communicator{Label: c.Label(), ID: c.ID, Ranks: c.Ranks, Recorded: []int32{}, Operations: []Operation{}, Waits: []Waits{}}
	type key struct {
		fn              string
		bytes           uint64
		algorithm, prot string
	}
	took := map[key][]uint64{}
	all := map[key]*Operation{}
	var keys []key
	for _, m := range c.Comms {
		out.Recorded = append(out.Recorded, m.Rank)
		for _, e := range events[m] {
			switch e.Type {
			case format.Coll, format.P2p, format.CeColl:
			default:
				continue
			}
			bytes, _ := e.Bytes()
			k := key{e.Func(), Traffic(e.Func(), bytes, c.Ranks), e.Algorithm(), e.Protocol()}
			if e.Type == format.P2p {
				k.algorithm = ""
			}
			op := all[k]
			if op == nil {
				op = &Operation{Func: k.fn, Bytes: k.bytes, Algorithm: k.algorithm, Protocol: k.prot}
				all[k] = op
				keys = append(keys, k)
			}
			op.Count++
			switch ns, by := duration(e); {
			case e.Captured:
				op.Captured++
			case by == "":
				op.Untimed++
			default:
				op.TimedBy = by
				took[k] = append(took[k], ns)
			}
		}
		if w, some := waits(m, events[m]); some {
			out.Waits = append(out.Waits, w)
		}
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.fn, b.fn), cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.algorithm, b.algorithm), cmp.Compare(a.prot, b.prot))
	})
	for _, k := range keys {
		op := all[k]
		op.P50, op.P99 = median(took[k]), quantile(took[k], 0.99)
		if op.P50 > 0 {
			op.Bus = float64(op.Bytes) / float64(op.P50) * Factor(op.Func, c.Ranks)
		}
		out.Operations = append(out.Operations, *op)
	}
	out.Skew = r.skew(c, events, out.Operations)
	return out
}

// duration is how long an operation was at work.
func duration(e *model.Event) (ns uint64, by string) {
	if e.Open || e.Launch {
		return 0, ""
	}
	from, to, by := worked(e)
	return to - from, by
}

// worked is when the first of an operation's kernels began and the last ended or,
// where these were not recorded, of its proxy operations.
func worked(e *model.Event) (from, to uint64, by string) {
	from = model.Never
	for _, want := range []struct {
		typ uint8
		by  string
	}{{format.KernelCh, "kernel"}, {format.ProxyOp, "proxy"}, {format.CeBatch, "copy engine"}} {
		for _, d := range e.Down {
			if d.Type == want.typ {
				from, to = min(from, d.From), max(to, d.To)
			}
		}
		if from <= to {
			return from, to, want.by
		}
	}
	return 0, 0, ""
}

// Waits are what the steps of a rank's proxy spent their time with, ns.
type Waits struct {
	Rank    int32  `json:"rank"`
	Steps   int    `json:"steps"`
	GPU     uint64 `json:"gpu"`     // for the GPU to fill or empty a buffer
	Peer    uint64 `json:"peer"`    // for the receiver's clear to send
	Send    uint64 `json:"send"`    // for a send to be done
	Receive uint64 `json:"receive"` // for data
	Flush   uint64 `json:"flush"`
}

func waits(c *model.Comm, events []*model.Event) (w Waits, some bool) {
	w.Rank = c.Rank
	into := map[uint32]*uint64{8: &w.GPU, 12: &w.GPU, 20: &w.Peer, 9: &w.Send, 10: &w.Receive, 11: &w.Flush}
	for _, e := range events {
		if e.Type != format.ProxyStep {
			continue
		}
		w.Steps++
		for _, in := range stays(e) {
			if to := into[in.number]; to != nil {
				*to += in.ns
			}
		}
	}
	return w, w.Steps > 0
}

// stay is how long an event was in a state.
type stay struct {
	number uint32
	ns     uint64
}

func stays(e *model.Event) []stay {
	var all []stay
	for i, s := range e.States {
		to := e.To
		if i+1 < len(e.States) {
			to = e.States[i+1].Time
		}
		if to > s.Time {
			all = append(all, stay{s.Number, to - s.Time})
		}
	}
	return all
}
