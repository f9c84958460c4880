package liveness

import (
	"context"
	"errors"
	"testing"
	"time"

	"weft/internal/report"
	"weft/transport/route"
	"weft/transport/session"
	"weft/transport/verbs/qp"
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
	p := w.newProbe(Key{Session: s}, &route.Pair{})
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
	if all := w.Probes(); len(all) != 0 {
		t.Errorf("%v", all)
	}
}
