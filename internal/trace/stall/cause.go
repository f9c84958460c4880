package stall

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"weft/internal/trace/model"
	"weft/internal/trace/ras"
	"weft/transport/record/format"
)

// causes finds what the waits lead to. A process that has stopped or is gone waits
// for nothing, whatever it had begun. A message that does not come between two
// processes that go on is the path's fault.
func (r *Report) causes(t *model.Trace) {
	after := map[*node][]*node{} // who waits for whom
	var waited []*node
	var paths, perhaps []*Wait
	seen := map[*node]bool{}
	for i := range r.Waits {
		w := &r.Waits[i]
		from, to := w.from, w.to
		switch {
		case w.Why == Undelivered && !from.stands() && !to.stands() && w.Uncertain:
			perhaps = append(perhaps, w)
			continue
		case w.Why == Undelivered && !from.stands() && !to.stands():
			paths = append(paths, w)
			continue
		case w.Why == Undelivered && from.stands() && to.stands():
			continue
		case w.Why == Undelivered && from.stands(): // what it sent does not come
			from, to = to, from
		case from.stands(): // what it waits for is nobody's fault
			continue
		}
		if !seen[to] {
			seen[to] = true
			waited = append(waited, to)
		}
		after[from] = append(after[from], to)
	}
	last := called(t)
	for _, n := range waited {
		onPath := slices.ContainsFunc(paths, func(w *Wait) bool { return w.from == n || w.to == n })
		if len(after[n]) == 0 && (!onPath || n.stands()) {
			r.Causes = append(r.Causes, Cause{Kind: "process", What: n.name, Waiting: waiting(n, after), Evidence: evidence(last, n), process: n.process})
		}
	}
	if len(r.Causes) == 0 && len(paths) == 0 {
		paths = perhaps // which sends were received is not known
	}
	for _, w := range paths {
		r.link(w)
	}
	if len(r.Causes) == 0 && len(waited) > 0 {
		r.circle(last, waited)
	}
	slices.SortStableFunc(r.Causes, func(a, b Cause) int { return b.Waiting - a.Waiting })
}

// Files is what the report says, to be held to RAS's answer.
func (r *Report) Files() ras.Files {
	var f ras.Files
	for _, c := range r.Causes {
		if c.process == nil {
			f.Else = true
		} else {
			f.Accused = append(f.Accused, c.process)
		}
	}
	return f
}

func (r *Report) link(w *Wait) {
	likely := ""
	if w.Uncertain {
		likely = "likely: "
	}
	r.Causes = append(r.Causes, Cause{
		Kind: "link", Waiting: 2,
		What:     fmt.Sprintf("the path from %s to %s (%s, %s to %s)", w.From, w.To, w.Network, or(w.FromDevice), or(w.ToDevice)),
		Evidence: []string{likely + fmt.Sprintf("%d messages were sent, their receives are there, and they have not come or were not acknowledged, for %v", w.Messages, short(w.Ns))},
	})
}

// circle is what is left where everybody waits for somebody.
func (r *Report) circle(last calls, waited []*node) {
	c := Cause{Kind: "circle", What: "everybody waits for another", Waiting: len(waited)}
	for _, n := range waited {
		for _, s := range signs(last, n) {
			c.Evidence = append(c.Evidence, n.name+": "+s)
		}
	}
	if len(c.Evidence) == 0 {
		c.Evidence = []string{"nobody is behind the others by what was recorded: see what each called last (weft trace merge)"}
	}
	r.Causes = append(r.Causes, c)
}

// waiting counts who waits for a process, at whatever hand.
func waiting(n *node, after map[*node][]*node) int {
	count := 0
	for from := range after {
		seen := map[*node]bool{}
		var reaches func(at *node) bool
		reaches = func(at *node) bool {
			if at == n {
				return true
			}
			seen[at] = true
			return slices.ContainsFunc(after[at], func(next *node) bool { return !seen[next] && reaches(next) })
		}
		if from != n && reaches(from) {
			count++
		}
	}
	return count
}

// evidence is why a process is waited for, as far as is known.
func evidence(last calls, n *node) []string {
	if all := signs(last, n); all != nil {
		return all
	}
	return []string{"it has begun nothing that others have not: what keeps it is outside of the network (its program, its GPU)"}
}

// signs are what a process's own records and the kernel say of it.
func signs(last calls, n *node) []string {
	var all []string
	switch {
	case n.life.Stopped:
		all = append(all, "the process is stopped, by a signal or a debugger")
	case n.life.Gone && n.stands():
		all = append(all, fmt.Sprintf("the process has ended, %v before the others' last sign of life", short(n.silent)))
	case n.stands() && n.life.Now != 0:
		all = append(all, fmt.Sprintf("the kernel has it running, but it has shown no sign of life for %v: it is frozen, or gets no CPU", short(n.silent)))
	case n.stands():
		all = append(all, fmt.Sprintf("it has shown no sign of life for %v: it is stopped or has ended, or its machine stands still", short(n.silent)))
	}
	if n.process == nil {
		return append(all, "it has no file here: record it too (WEFT_PROFILE=trace), or read its folder")
	}
	return append(append(all, last.behind(n.process)...), gpu(n)...)
}

// operation is one of a communicator, counted by its function.
type operation struct {
	of *model.Communicator
	fn string
}

// calls are the numbers behind the last that each process has called.
type calls map[operation]map[*model.Process]uint64

func called(t *model.Trace) calls {
	last := calls{}
	for _, p := range t.Processes {
		for _, e := range p.Events {
			if e.Type != format.Coll || e.In == nil || e.In.Of.ID == 0 {
				continue
			}
			k := operation{e.In.Of, e.Func()}
			if last[k] == nil {
				last[k] = map[*model.Process]uint64{}
			}
			last[k][p] = max(last[k][p], e.A+1)
		}
	}
	return last
}

// behind tells of which collectives a process has called fewer than others.
func (c calls) behind(p *model.Process) []string {
	var all []string
	for k, of := range c {
		if !slices.ContainsFunc(k.of.Comms, func(c *model.Comm) bool { return c.Process == p }) {
			continue
		}
		most := uint64(0)
		for _, n := range of {
			most = max(most, n)
		}
		switch {
		case of[p] == most:
		case of[p] == 0 && p.Loss.Overwritten > 0: // it may have, long ago
		case of[p] == 0:
			all = append(all, fmt.Sprintf("it has not called %s of %s, which others have called", k.fn, k.of.Label()))
		default:
			all = append(all, fmt.Sprintf("its last %s of %s is the one numbered %d, others have called that numbered %d", k.fn, k.of.Label(), of[p]-1, most-1))
		}
	}
	slices.Sort(all)
	return all
}

func or(device string) string {
	if device == "" {
		return "?"
	}
	return device
}

// short rounds to what people read.
func short(ns uint64) string {
	d := time.Duration(min(ns, math.MaxInt64))
	switch {
	case d > time.Minute:
		return d.Round(time.Second).String()
	case d > time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return strings.Replace(d.Round(time.Millisecond).String(), "µ", "u", 1)
}
