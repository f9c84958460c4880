package stall

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"weft/internal/trace/model"
	"weft/transport/record/format"
)

// causes finds what the waits lead to. A process that has stopped or is gone waits
// for nothing, whatever it had begun. A message that does not come between two
// processes that go on is the way's fault.
func (r *Report) causes(t *model.Trace) {
	after := map[*node][]*node{} // who waits for whom
	var waited []*node
	for i := range r.Waits {
		w := &r.Waits[i]
		if w.Why == Way && !w.from.stands() && !w.to.stands() {
			r.link(w)
			continue
		}
		from, to := w.from, w.to
		if w.Why == Way && w.from.stands() { // what it sent does not come
			from, to = to, from
		}
		if !slices.Contains(waited, to) {
			waited = append(waited, to)
		}
		if !from.stands() {
			after[from] = append(after[from], to)
		}
	}
	found := false
	for _, n := range waited {
		if len(after[n]) == 0 && !r.ofLink(n) {
			r.Causes = append(r.Causes, Cause{Kind: "process", What: n.name, Waiting: waiting(n, after), Evidence: evidence(t, n)})
			found = true
		}
	}
	if !found && len(r.Causes) == 0 && len(waited) > 0 {
		r.circle(t, waited)
	}
	slices.SortStableFunc(r.Causes, func(a, b Cause) int { return b.Waiting - a.Waiting })
}

// ofLink reports whether a process has what it waits for on a way that is at fault.
func (r *Report) ofLink(n *node) bool {
	return slices.ContainsFunc(r.Waits, func(w Wait) bool { return w.Why == Way && (w.from == n || w.to == n) && !n.stands() })
}

func (r *Report) link(w *Wait) {
	r.Causes = append(r.Causes, Cause{
		Kind: "link", Waiting: 2,
		What:     fmt.Sprintf("the way from %s to %s (%s, %s to %s)", w.From, w.To, w.Network, or(w.FromDevice), or(w.ToDevice)),
		Evidence: []string{fmt.Sprintf("%d messages were sent, their receives are there, and they have not come or were not acknowledged, for %v", w.Messages, short(w.Ns))},
	})
}

// circle is what is left where everybody waits for somebody.
func (r *Report) circle(t *model.Trace, waited []*node) {
	c := Cause{Kind: "circle", What: "everybody waits for another", Waiting: len(waited)}
	for _, n := range waited {
		for _, s := range signs(t, n) {
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
func evidence(t *model.Trace, n *node) []string {
	if all := signs(t, n); all != nil {
		return all
	}
	return []string{"it has begun nothing that others have not: what keeps it is outside of the network (its program, its GPU)"}
}

// signs are what a process's own records and the kernel say of it.
func signs(t *model.Trace, n *node) []string {
	var all []string
	switch {
	case n.life.Stopped:
		all = append(all, "the process is stopped, by a signal or a debugger")
	case n.life.Gone && n.stands():
		all = append(all, fmt.Sprintf("the process has ended, %v before the others' last sign of life", short(n.silent)))
	case n.stands():
		all = append(all, fmt.Sprintf("it has shown no sign of life for %v: it is stopped or has ended, or its machine stands still", short(n.silent)))
	}
	if n.process == nil {
		return append(all, "it has no file here: record it too (WEFT_PROFILE=trace), or read its folder")
	}
	return append(append(all, behind(t, n.process)...), gpu(n)...)
}

// operation is one of a communicator, counted by its function.
type operation struct {
	of *model.Communicator
	fn string
}

// behind tells of which collectives a process has begun fewer than others.
func behind(t *model.Trace, p *model.Process) []string {
	last := map[operation]map[*model.Process]uint64{}
	for _, q := range t.Processes {
		for _, e := range q.Events {
			if e.Type != format.Coll || e.In == nil || e.In.Of.ID == 0 {
				continue
			}
			k := operation{e.In.Of, e.Func()}
			if last[k] == nil {
				last[k] = map[*model.Process]uint64{}
			}
			last[k][q] = max(last[k][q], e.A+1)
		}
	}
	var all []string
	for k, of := range last {
		if !slices.ContainsFunc(k.of.Comms, func(c *model.Comm) bool { return c.Process == p }) {
			continue
		}
		most := uint64(0)
		for _, n := range of {
			most = max(most, n)
		}
		switch {
		case of[p] == most:
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
	d := time.Duration(ns)
	switch {
	case d > time.Minute:
		return d.Round(time.Second).String()
	case d > time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return strings.Replace(d.Round(time.Millisecond).String(), "µ", "u", 1)
}
