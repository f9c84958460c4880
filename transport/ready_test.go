package transport

import (
	"testing"
	"time"

	"weft/transport/wire"
)

// connecting begins a connect and waits until nothing but the host's next poll is missing.
func (p *process) connecting(t *testing.T, handle []byte) *connector {
	t.Helper()
	if c, err := p.ctx.Connect(p.dev, -1, handle); c != nil || err != nil {
		t.Fatal(c, err)
	}
	k := p.ctx.connectorOf(handle)
	eventually(t, "the connect is done", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.done
	})
	return k
}

// NCCL up to 2.26 begins a connect for each rank that PXN brings to one proxy, takes the first that is done for all of
// them, and never polls the others. The peer must not accept one of those.
func TestOnlyTakenConnectIsAccepted(t *testing.T) {
	t.Run("TCP", func(t *testing.T) {
		onlyTaken(t, start(t, nil, netDevice(0, "lo", 2, "127.0.0.1/8")), start(t, nil, netDevice(0, "lo", 2, "127.0.0.1/8")))
	})
	t.Run("RDMA", func(t *testing.T) {
		a, b, s, r := simPair(t, nil)
		onlyTaken(t, a, b, s, r)
	})
}

// open is what both have open before.
func onlyTaken(t *testing.T, a, b *process, open ...*Comm) {
	first, h1 := b.listen(t, wire.HandleMax)
	second, h2 := b.listen(t, wire.HandleMax)
	left, wanted := a.connecting(t, h1), a.connecting(t, h2)
	for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) { // time to be wrong in
		for _, l := range []*Listener{first, second} {
			if c, err := l.Accept(); c != nil || err != nil {
				t.Fatalf("accepted what nobody has taken: %v %v", c, err)
			}
		}
	}
	send, err := a.ctx.Connect(a.dev, -1, h2)
	if err != nil || send == nil {
		t.Fatalf("the connect is done, and a poll returned %v %v", send, err)
	}
	recv, err := accept(second)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := first.Accept(); c != nil || err != nil {
		t.Fatalf("accepted what nobody has taken: %v %v", c, err)
	}
	if a.ctx.connectorOf(h2) == wanted {
		t.Error("a connect that is taken is still there")
	}
	before := len(b.log.Lines())
	for _, l := range []*Listener{first, second} { // as NCCL does
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	m := left.comm.member
	left.abandon()
	eventually(t, "the other comm ends", func() bool { return !m.Session.Has(m.ID) })
	if lines := b.log.Lines()[before:]; len(lines) > 0 {
		t.Errorf("the listening side says %q", lines)
	}
	for _, c := range append(open, send, recv) {
		c.Close()
	}
	eventually(t, "nothing of the other is left", func() bool { // but this hold
		s, err := a.sessions.Get(t.Context(), m.Session.Peer.Process, nil)
		if err != nil || s != m.Session {
			t.Fatal(err)
		}
		return s.Release()
	})
}
