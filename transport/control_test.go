package transport

import (
	"net"
	"syscall"
	"testing"

	"weft/internal/report"
	"weft/transport/rendezvous"
	"weft/transport/session"
)

func TestControlConnectionBreaks(t *testing.T) {
	one := func(p *process) *session.Session {
		if in, _ := p.sessions.Open(); len(in) > 0 {
			return in[0]
		}
		return nil
	}
	t.Run("network", func(t *testing.T) {
		a, b := start(t, nil), start(t, nil)
		s, r := pair(t, a, b)
		in := recv(r, register(t, r, buffer(t, 10), 10))
		in.step()
		one(b).End(report.Errorf(report.Network, "control connection", "reading: %w", syscall.ETIMEDOUT).With("the peer"))
		drive(t, "a receive without its network", in)
		if in.code != 100+int32(report.Network) || b.log.Count("WARN control connection with the peer", "timed out") != 1 {
			t.Errorf("code %d, log %q", in.code, b.log.Lines())
		}
		_ = s
	})
	t.Run("closed while the streams stand", func(t *testing.T) {
		a, b := start(t, nil), start(t, nil)
		s, r := pair(t, a, b)
		one(b).Conn.CloseWrite() // what a peer does that breaks off only this connection
		out := send(s, register(t, s, buffer(t, waitsForCTS), waitsForCTS))
		drive(t, "a send without its control connection", out)
		if out.code != 100+int32(report.Peer) {
			t.Errorf("code %d, log %q", out.code, a.log.Lines())
		}
		_ = r
	})
	t.Run("a new connect opens another", func(t *testing.T) {
		a, b := start(t, nil), start(t, nil)
		pair(t, a, b)
		old := one(b)
		old.Conn.Close()
		eventually(t, "both sides noticed", func() bool { _, out := a.sessions.Open(); return len(out) == 0 })
		s, r := pair(t, a, b)
		move(t, s, r, 100)
	})
}

// connPair is a TCP connection, and its other end.
func connPair(t *testing.T) (*rendezvous.Conn, *net.TCPConn) {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out, err := net.DialTCP("tcp", nil, l.Addr().(*net.TCPAddr))
	if err != nil {
		t.Fatal(err)
	}
	in, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	k, err := rendezvous.NewConn(out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close(); in.Close() })
	return k, in
}
