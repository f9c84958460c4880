package liveness

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"weft/internal/conns"
	"weft/internal/report"
	"weft/transport/route"
	"weft/transport/session"
	"weft/transport/verbs/qp"
	"weft/transport/wire"
)

// A probe that fails at once, as Soft-RoCE's does on a port that is down, tells of
// the path if the port stays down; else of the probe alone.
func TestProbeThatFailsOnAPortThatIsDown(t *testing.T) {
	failed := report.Errorf(report.Host, "probe", "a write of 256 bytes ended LOC_QP_OP_ERR")
	silent := &qp.Unanswered{Err: failed}
	for _, c := range []struct {
		name string
		err  error
		down []string // asked again
		path bool     // it tells of the path
	}{
		{"a port that is up", failed, []string{""}, false},
		{"a port that is down", failed, []string{"it is down", "it is down"}, true},
		{"a port that comes back", failed, []string{"it is down", ""}, false},
		{"no answer", silent, nil, true},
		{"no failure of the card's", errors.New("over"), nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			down := func() string {
				why := c.down[0]
				c.down = c.down[1:]
				return why
			}
			var u *qp.Unanswered
			if err := judge(t.Context(), c.err, 0, down); errors.As(err, &u) != c.path || !c.path && err != c.err || c.path && u.Err != failed {
				t.Error(err)
			}
		})
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := judge(over, failed, 1<<40, func() string { return "it is down" }); err != failed {
		t.Errorf("when it is over: %v", err)
	}
}

// carried is what a watcher looks after, without queue pairs.
type carried struct{ Subject }

// Probes end with the last subject, however seldom the watch looks.
func TestProbesEndWithTheLastSubject(t *testing.T) {
	w := New(Config{Log: report.Discard{}, Timeout: time.Hour, Vacant: func() {}})
	s := &session.Session{Active: true, Life: t.Context()}
	v := &carried{}
	w.Add(v)
	w.mu.Lock()
	p := w.newProbe(key{session: s}, &route.Pair{})
	w.mu.Unlock()
	w.Remove(v)
	select {
	case <-p.ctx.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("it goes on")
	}
	if err := context.Cause(p.ctx); err != errUnused {
		t.Error(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.probes) != 0 {
		t.Errorf("%v", w.probes)
	}
}

// What a peer says about probes is checked against what it may say.
func TestProbeMessagesAreChecked(t *testing.T) {
	end := wire.QPEnd{QPN: 17, MTU: 5, GID: wire.PortGID{Addr: wire.GID{0xfd, 15: 1}, Type: 2, Bits: 64}}
	offer, answer := &wire.ProbeOffer{Number: 7, End: end}, &wire.ProbeAnswer{Number: 7, End: end}
	works := &wire.ProbeState{Number: 7, State: wire.ProbeWorks}
	gone := &wire.ProbeState{Number: 7, State: wire.ProbeGone, Reason: "no room"}
	silent := &wire.ProbeState{Number: 7, State: wire.ProbeSilent, Reason: "no answer"}
	all := session.NewAll(session.Config{Log: report.Discard{}, Build: "test", Lingers: func(int) {}})
	w := New(Config{Log: report.Discard{}, Timeout: time.Hour})
	for _, c := range []struct {
		name   string
		m      session.Frame
		active bool // who gets it opened the session
		legal  bool
	}{
		{"offer", offer, false, true},
		{"offer of the listening side", offer, true, false},
		{"answer to nothing", answer, true, true},
		{"answer of the connecting side", answer, false, false},
		{"works", works, false, true},
		{"works, says the listening side", works, true, false},
		{"gone", gone, false, true},
		{"gone there", gone, true, true},
		{"silent", silent, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			k, far := conns.Pair(t)
			s := all.New(k, &wire.Hello{Build: "test"}, nil, c.active)
			if err := w.Serve(s, c.m.Append(nil)); (err == nil) != c.legal || err != nil && !errors.Is(err, wire.ErrMalformed) {
				t.Error(err)
			}
			k.Close()
			b, err := io.ReadAll(far)
			if err != nil {
				t.Fatal(err)
			}
			if said := string(b); (c.m == offer && c.legal) != strings.Contains(said, "no connection of that class runs between these ports") {
				t.Errorf("it says %q", said)
			}
			if len(w.probes) != 0 {
				t.Error("it made a probe")
			}
		})
	}
}
