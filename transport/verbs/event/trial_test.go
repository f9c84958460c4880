package event

import (
	"errors"
	"sync/atomic"
	"syscall"
	"testing"

	"weft/internal/fakeibv"
	"weft/transport/verbs/ibv"
)

// What an event says of a port while the port is asked is newer than the answer.
func TestEventWhileThePortIsAsked(t *testing.T) {
	for _, c := range []struct {
		name   string
		before int32 // the port's state when it is asked
		event  ibv.EventKind
		after  string
	}{
		{"it comes up", 1, ibv.EventPortActive, ""},
		{"it goes down", ibv.PortActive, ibv.EventPortErr, "the link is down"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1)).Eventful()
			b := newBench(t, f, nil)
			defer b.end()
			came := make(chan Event, 1)
			b.s.Subscribe(func(e Event) { came <- e })
			state := func(s int32) {
				f.Lock()
				f.Cards[0].Ports[0].State = s
				f.Unlock()
			}
			var second atomic.Bool // what the event asks does not wait for the first
			ask := b.c.Lib.QueryPort
			b.c.Lib.QueryPort = func(o ibv.Object, port uint8) (ibv.PortAttr, syscall.Errno) {
				attr, errno := ask(o, port)
				if !second.Swap(true) {
					f.Send(ibv.AsyncEvent{Kind: c.event, Port: 1})
					fakeibv.Receive(t, came)
				}
				return attr, errno
			}
			state(c.before)
			if err := b.d.Look(); err != nil {
				t.Fatal(err)
			}
			if down := b.d.Down(); down != c.after {
				t.Errorf("down: %q, want %q", down, c.after)
			}
			state(ibv.PortActive)
			if err := b.d.Look(); err != nil || b.d.Down() != "" {
				t.Errorf("asked again: %q, %v", b.d.Down(), err)
			}
		})
	}
}

// A card that is in an outage, with a connection on it, is tried no more once it is closed.
func TestCloseEndsTrials(t *testing.T) {
	f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1)).Eventful()
	b := newBench(t, f, nil)
	came := make(chan Event, 1)
	b.s.Subscribe(func(e Event) { came <- e })
	f.Send(ibv.AsyncEvent{Kind: ibv.EventDeviceFatal})
	fakeibv.Receive(t, came)
	b.s.Close()
	before := len(f.Made())
	b.c.Stir()
	b.c.Fails(b.s.works)
	if calls := f.Made()[before:]; len(calls) != 0 {
		t.Errorf("it is tried: %v", calls)
	}
	if err := errors.Join(b.cq.Close(), b.pd.Release()); err != nil {
		t.Error(err)
	}
	if left := f.Left(); left != nil {
		t.Errorf("left: %v", left)
	}
}
