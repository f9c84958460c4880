// Package stall tells from what the processes of a job have recorded, while it
// stands still or after it was killed, who waits for whom, and who or what the
// others wait for in the end.
package stall

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"weft/internal/owner"
	"weft/internal/trace/model"
	"weft/internal/trace/ras"
)

// Schema is the version of the report's JSON. Times are in nanoseconds.
const Schema = 1

// Report is who waits, and why.
type Report struct {
	Schema int      `json:"schema"`
	Least  int64    `json:"least"` // what has taken less is no wait
	Causes []Cause  `json:"causes"`
	Waits  []Wait   `json:"waits"` // the longest first
	Said   []Said   `json:"said"`  // what processes said themselves, in their hosts' logs
	Notes  []string `json:"notes"`

	RAS *ras.Section `json:"ras,omitempty"` // where it was asked

	at map[waitKey]int // in Waits, until they are sorted
}

// Said is what a process said last.
type Said struct {
	Process string `json:"process"`
	Ago     uint64 `json:"ago"`
	Text    string `json:"text"`
}

// waitKey is what makes messages one wait.
type waitKey struct {
	from, to                  *node
	why, fromDevice, toDevice string
}

// Cause is what others wait for and what itself waits for nobody.
type Cause struct {
	Kind     string   `json:"kind"` // process, link, circle
	What     string   `json:"what"`
	Waiting  int      `json:"waiting"` // processes, at first or second hand
	Evidence []string `json:"evidence"`

	process *model.Process // nil: it is none of which a file was read
}

// Reasons of a Wait.
const (
	NoReceive   = "no receive"  // From has sent, To has not posted the receive
	NoSend      = "no send"     // From has posted a receive, To has not sent
	Undelivered = "undelivered" // both have; the message has not come from From to To
)

// Wait is one of a process for another, on all their connections over one pair of devices.
type Wait struct {
	From       string `json:"from"`
	To         string `json:"to"`
	Why        string `json:"why"`
	Ns         uint64 `json:"ns"` // of the oldest message
	Messages   int    `json:"messages"`
	Bytes      uint64 `json:"bytes"`
	Network    string `json:"network"`
	FromDevice string `json:"from_device"`
	ToDevice   string `json:"to_device"`
	Uncertain  bool   `json:"uncertain"` // which receive took which send is not known: judged by what is open at both ends

	from, to *node
}

// Life is what is known of a process beside its file.
type Life = owner.Life

// node is somebody who waits or is waited for.
type node struct {
	name    string
	process *model.Process // nil: no file of it was read
	life    Life
	seen    uint64 // when it last recorded something, or showed that it ran
	now     uint64 // until when its waits count
	silent  uint64 // for how long it has not shown that it runs, while others of its machine did
}

// silence is how long a process that shows twice a second that it runs may seem not to.
const silence = 2 * time.Second

// stands reports whether the process cannot go on, whatever it waits for.
func (n *node) stands() bool { return n.life.Stopped || n.silent > uint64(silence) }

// New judges a trace. look says what is known of a process now; what has been
// under way for less than least counts as going on.
func New(t *model.Trace, look func(*model.Process) Life, least time.Duration) *Report {
	r := &Report{Schema: Schema, Least: int64(least), Causes: []Cause{}, Waits: []Wait{}, Said: []Said{}, at: map[waitKey]int{}, Notes: append([]string{}, t.Notes...)}
	for _, p := range t.Processes {
		if p.Loss.Any() {
			r.Notes = append(r.Notes, fmt.Sprintf("%s: lost %v: waits may be missing, or over", p.Name(), p.Loss))
		}
	}
	nodes, peers := r.nodes(t, look), map[string]*node{}
	for _, c := range t.Connections {
		r.connection(c, nodes)
	}
	for _, p := range t.Processes {
		for _, e := range p.Ends {
			if e.Of == nil && e.Known && !e.Doubtful {
				r.alone(e, nodes[p], peers)
			}
		}
	}
	r.steps(t, nodes)
	for _, p := range t.Processes {
		if n := nodes[p]; len(p.Said) > 0 {
			last := p.Said[len(p.Said)-1]
			r.Said = append(r.Said, Said{n.name, n.now - min(n.now, last.Time), last.Text})
		}
	}
	slices.SortStableFunc(r.Waits, func(a, b Wait) int { return cmp.Compare(b.Ns, a.Ns) })
	r.causes(t)
	return r
}

// nodes are the processes. For a machine one of whose processes is known to run it
// is now, or later where a file that was read after that tells it; for others it is
// when the last of their processes showed that it ran.
func (r *Report) nodes(t *model.Trace, look func(*model.Process) Life) map[*model.Process]*node {
	all, now, last := map[*model.Process]*node{}, map[*model.Machine]uint64{}, map[*model.Machine]uint64{}
	for _, p := range t.Processes {
		n := &node{name: p.Title(), process: p, life: look(p), seen: p.Seen()}
		if n.life.Now != 0 && !n.life.Gone {
			now[p.Machine] = n.life.Now
		}
		all[p], last[p.Machine] = n, max(last[p.Machine], n.seen)
	}
	for _, n := range all {
		n.now = now[n.process.Machine]
		if n.now == 0 {
			n.now = last[n.process.Machine]
		}
		if n.process.Header.Alive != 0 && n.seen < n.now {
			n.silent = n.now - n.seen
		}
		if n.life.Now != 0 && !n.life.Gone {
			n.now = max(n.now, n.seen)
		}
	}
	for _, m := range t.Machines {
		if !slices.ContainsFunc(t.Processes, func(p *model.Process) bool { return p.Machine == m && all[p].life.Now != 0 && !all[p].life.Gone }) {
			r.Notes = append(r.Notes, fmt.Sprintf("no process of %s is known to run: this is how it was when the last of them showed that it did", m.Host))
		}
	}
	return all
}

// connection finds who waits on one.
func (r *Report) connection(c *model.Connection, nodes map[*model.Process]*node) {
	from, to := nodes[c.Sender.Process], nodes[c.Receiver.Process]
	sending, receiving := anyOpen(c.Sender), anyOpen(c.Receiver)
	for _, m := range c.Sender.Messages {
		switch {
		case !m.Open:
		case c.Sure && m.Other == nil, !c.Sure && !receiving:
			r.wait(c, from, to, NoReceive, m, from.now)
		default:
			r.wait(c, from, to, Undelivered, m, from.now)
		}
	}
	for _, m := range c.Receiver.Messages {
		switch {
		case !m.Open:
		case c.Sure && m.Took < len(m.Tags), !c.Sure && !sending:
			r.wait(c, to, from, NoSend, m, to.now)
		case c.Sure && !m.Other.Open: // sent, and not come
			r.wait(c, from, to, Undelivered, m, to.now)
		}
	}
}

func anyOpen(e *model.End) bool {
	return slices.ContainsFunc(e.Messages, func(m *model.Message) bool { return m.Open })
}

// alone is an end whose other end is in no file.
func (r *Report) alone(e *model.End, own *node, peers map[string]*node) {
	who := cmp.Or(e.Peer, "an unknown peer") + " (no file of it was read)"
	if peers[who] == nil {
		peers[who] = &node{name: who}
	}
	c, why := &model.Connection{Sender: e, Receiver: &model.End{}}, NoReceive
	if !e.Sends {
		c, why = &model.Connection{Sender: &model.End{}, Receiver: e}, NoSend
	}
	for _, m := range e.Messages {
		if m.Open {
			r.wait(c, own, peers[who], why, m, own.now)
		}
	}
}

// wait adds a message to the wait that it belongs to.
func (r *Report) wait(c *model.Connection, from, to *node, why string, m *model.Message, now uint64) {
	mine, its := c.Sender, c.Receiver
	if why == NoSend {
		mine, its = its, mine
	}
	r.add(Wait{Why: why, Network: m.End.NetworkName(), FromDevice: mine.Device, ToDevice: its.Device, Bytes: m.Bytes, Uncertain: !c.Sure, from: from, to: to}, m.From, now)
}

// add counts one message of which somebody has waited since then.
func (r *Report) add(one Wait, since, now uint64) {
	if now < since || now-since < uint64(r.Least) {
		return
	}
	k := waitKey{one.from, one.to, one.Why, one.FromDevice, one.ToDevice}
	at, is := r.at[k]
	if !is {
		at = len(r.Waits)
		r.at[k] = at
		r.Waits = append(r.Waits, Wait{
			From: one.from.name, To: one.to.name, Why: one.Why, Network: one.Network,
			FromDevice: one.FromDevice, ToDevice: one.ToDevice, from: one.from, to: one.to,
		})
	}
	w := &r.Waits[at]
	w.Messages++
	w.Ns = max(w.Ns, now-since)
	w.Bytes += one.Bytes
	w.Uncertain = w.Uncertain || one.Uncertain
}
