package verbs

import (
	"sync/atomic"
	"syscall"
	"testing"

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
		{"it goes down", ibv.PortActive, ibv.EventPortErr, linkDown},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := eventful(t, newFake(t, roce("a", "10.0.0.1", 1)))
			b := newBench(t, f, nil)
			defer b.end()
			came := make(chan Event, 1)
			b.d.Subscribe(func(e Event) { came <- e })
			state := func(s int32) {
				f.mu.Lock()
				f.cards[0].ports[0].State = s
				f.mu.Unlock()
			}
			var second atomic.Bool // what the event asks does not wait for the first
			ask := b.p.lib.QueryPort
			b.p.lib.QueryPort = func(o ibv.Object, port uint8) (ibv.PortAttr, syscall.Errno) {
				attr, errno := ask(o, port)
				if !second.Swap(true) {
					f.send(t, ibv.AsyncEvent{Kind: c.event, Port: 1})
					receive(t, came)
				}
				return attr, errno
			}
			state(c.before)
			if err := b.d.look(); err != nil {
				t.Fatal(err)
			}
			if down := b.d.Down(); down != c.after {
				t.Errorf("down: %q, want %q", down, c.after)
			}
			state(ibv.PortActive)
			if err := b.d.look(); err != nil || b.d.Down() != "" {
				t.Errorf("asked again: %q, %v", b.d.Down(), err)
			}
		})
	}
}

// Addresses that were asked for earlier do not replace those asked for later.
func TestAddressesAskedForTwiceAtOnce(t *testing.T) {
	f := newFake(t, roce("a", "10.0.0.1", 1))
	b := newBench(t, f, nil)
	defer b.end()
	was := b.d.GIDs()[0]
	later := false
	table := b.p.lib.QueryGIDTable
	b.p.lib.QueryGIDTable = func(o ibv.Object, most int) ([]ibv.GIDEntry, syscall.Errno) {
		all, errno := table(o, most)
		if !later {
			later = true
			f.mu.Lock()
			f.cards[0].ports[0].gids = roce("a", "10.0.0.7", 1).ports[0].gids
			f.mu.Unlock()
			if err := b.d.RefreshGIDs(); err != nil {
				t.Error(err)
			}
		}
		return all, errno
	}
	if err := b.d.RefreshGIDs(); err != nil {
		t.Fatal(err)
	}
	if g := b.d.GIDs()[0]; g == was {
		t.Errorf("the port is back at %v", g)
	}
}
