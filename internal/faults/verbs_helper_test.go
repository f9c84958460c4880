package faults

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"weft/internal/host"
	"weft/internal/simverbs"
)

// world is a simulated libibverbs with two hosts on one subnet, each named after its
// only device; simA/simA is that device in faults' lines:
//
//	simA --- 10.9.1.0/24 --- simB
type world struct {
	simverbs.World
	t    testing.TB
	dist string
}

var worlds atomic.Int32

func newWorld(t testing.TB, a, b simverbs.Device) *world {
	t.Helper()
	a.Name, a.Node, a.GIDs = "simA", "simA", []string{"10.9.1.1/24"}
	b.Name, b.Node, b.GIDs = "simB", "simB", []string{"10.9.1.2/24"}
	dist, err := simverbs.Dist()
	must(t, err, "simverbs")
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune("/ :;,", r) {
			return '-'
		}
		return r
	}, t.Name())
	w := &world{t: t, dist: dist, World: simverbs.World{Name: fmt.Sprintf("%.30s-%d-%d", name, os.Getpid(), worlds.Add(1)), Devices: []simverbs.Device{a, b}}}
	t.Cleanup(func() {
		if err := w.Remove(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// env is what a process that sees one device of the world needs; faults hold from its start.
func (w *world) env(device string, faults ...string) []string {
	w.t.Helper()
	env, err := w.Env(w.dist, device, faults...)
	must(w.t, err, "environment of "+device)
	return env
}

// start is a process with one device of the world.
func (w *world) start(device string, version int, env ...string) *peer {
	w.t.Helper()
	return start(w.t, device, version, append(w.env(device), env...)...)
}

func (w *world) command(p *peer, lines ...string) {
	w.t.Helper()
	must(w.t, w.Control(p.h.PID, lines...), "fault")
}

func (w *world) count(p *peer) simverbs.Objects {
	w.t.Helper()
	o, err := w.Count(p.h.PID)
	must(w.t, err, "count")
	return o
}

// atRest waits until a process has no more of the device than before.
func (w *world) atRest(p *peer, before simverbs.Objects, why string) {
	w.t.Helper()
	settle(w.t, fmt.Sprintf("%s: %+v before", why, before), func() (string, bool) {
		o := w.count(p)
		return fmt.Sprintf("%+v now", o), o.MRs <= before.MRs && o.CQs <= before.CQs && o.QPs <= before.QPs
	})
}

// said are the lines that p logged from a mark on.
func said(p *peer, mark int) []string {
	var lines []string
	for _, l := range p.h.Logs()[mark:] {
		lines = append(lines, l.Text)
	}
	return lines
}

func marked(p *peer) int { return len(p.h.Logs()) }

// byRDMA counts the comms that p has opened over RDMA since a mark.
func byRDMA(p *peer, mark int) int {
	n := 0
	for _, l := range said(p, mark) {
		if strings.Contains(l, " over sim") && strings.Contains(l, "GIDs") {
			n++
		}
	}
	return n
}

// firstQP is the number of the queue pair that p's first comm over RDMA began with.
func firstQP(p *peer) (number int) {
	for _, l := range said(p, 0) {
		if _, rest, ok := strings.Cut(l, "(QPs "); ok {
			fmt.Sscanf(rest, "%d-", &number)
			break
		}
	}
	return number
}

// stuck tells whether an error is no answer of the library: it hangs, or died.
func stuck(err error) bool {
	var d *host.DeathError
	return host.TimedOut(err) || errors.As(err, &d)
}
