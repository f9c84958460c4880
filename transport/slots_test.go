package transport

import (
	"runtime"
	"testing"

	"weft/internal/hostile"
	"weft/transport/wire"
)

// Frame 2 ends the connecting side's race of paths: it comes at once, however many others wait for their turn, and the rest of the
// answer comes with the turn.
func TestFrame2WaitsForNoTurn(t *testing.T) {
	b := start(t, nil)
	_, handle := b.listen(t, wire.HandleMax)
	var c *hostile.Conn
	eventually(t, "frame 2 comes alone", func() bool { // a turn that is taken is another's after a while, which may be over here
		var turns []func()
		for leave, free := b.incoming.Try(); free; leave, free = b.incoming.Try() {
			turns = append(turns, leave)
		}
		var err error
		if c, err = peerOf(t, handle).Open(wire.RoleComm); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		alone := c.Buffered() == 0
		for _, leave := range turns {
			leave()
		}
		return alone
	})
	for _, want := range []wire.Kind{wire.KindHello, wire.KindLanes} {
		if frame, err := c.NextPadded(); err != nil || wire.KindOf(frame) != want {
			t.Errorf("%v, message of %v, want %v", err, wire.KindOf(frame), want)
		}
	}
}

// Who begins handshakes of comms and leaves them where they are keeps nobody from
// his turn: a listen that is under such an attack serves others at once.
func TestHalfOpenHandshakesTakeNoTurn(t *testing.T) {
	b := start(t, nil)
	l, handle := b.listen(t, wire.HandleMax)
	silent := peerOf(t, handle)
	for range 24 * max(4, runtime.GOMAXPROCS(0)) { // three times as many as there are turns
		c, err := silent.Open(wire.RoleComm)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if n := b.incoming.Busy(); n != 0 {
		t.Errorf("%d turns are taken by who is silent", n)
	}
	a := start(t, nil)
	if _, err := a.connect(handle); err != nil {
		t.Fatal(err)
	}
	if _, err := accept(l); err != nil {
		t.Fatal(err)
	}
}
