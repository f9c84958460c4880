package transport

import (
	"runtime"
	"testing"

	"weft/transport/wire"
)

// Who begins handshakes of comms and leaves them where they are keeps nobody from
// his turn: a listen that is under such an attack serves others at once.
func TestHalfOpenHandshakesTakeNoTurn(t *testing.T) {
	b := start(t, nil)
	l, handle := b.listen(t, wire.HandleMax)
	silent := peerOf(t, handle)
	for range 24 * max(4, runtime.GOMAXPROCS(0)) { // three times as many as there are turns
		c, err := silent.Dial()
		if err == nil {
			defer c.Close()
			err = silent.Ask(c, wire.RoleComm)
		}
		if err != nil {
			t.Fatal(err)
		}
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
