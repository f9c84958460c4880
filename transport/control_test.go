package transport

import (
	"syscall"
	"testing"

	"weft/internal/report"
)

func TestControlConnectionBreaks(t *testing.T) {
	t.Run("network", func(t *testing.T) {
		a, b := start(t, nil), start(t, nil)
		s, r := pair(t, a, b)
		in := recv(r, register(t, r, buffer(t, 10), 10))
		in.step()
		r.Member().Session.End(report.Errorf(report.Network, "control connection", "reading: %w", syscall.ETIMEDOUT).With("the peer"))
		drive(t, "a receive without its network", in)
		if in.code != 100+int32(report.Network) || b.log.Count("WARN control connection with the peer", "timed out") != 1 {
			t.Errorf("code %d, log %q", in.code, b.log.Lines())
		}
		_ = s
	})
	t.Run("closed while the streams stand", func(t *testing.T) {
		a, b := start(t, nil), start(t, nil)
		s, r := pair(t, a, b)
		r.Member().Session.Conn.CloseWrite() // what a peer does that breaks off only this connection
		out := send(s, register(t, s, buffer(t, waitsForCTS), waitsForCTS))
		drive(t, "a send without its control connection", out)
		if out.code != 100+int32(report.Peer) {
			t.Errorf("code %d, log %q", out.code, a.log.Lines())
		}
	})
	t.Run("a new connect opens another", func(t *testing.T) {
		a, b := start(t, nil), start(t, nil)
		s, r := pair(t, a, b)
		here, there := s.Member().Session, r.Member().Session
		there.Conn.Close()
		eventually(t, "both sides noticed", func() bool { return here.Over() != nil && there.Over() != nil })
		s, r = pair(t, a, b)
		move(t, s, r, 100)
	})
}
