package transport

import (
	"context"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/report"
	"weft/transport/rendezvous"
	"weft/transport/wire"
)

func TestControlConnectionBreaks(t *testing.T) {
	one := func(p *process) *session {
		p.sessions.mu.Lock()
		defer p.sessions.mu.Unlock()
		for _, s := range p.sessions.in {
			return s
		}
		return nil
	}
	t.Run("network", func(t *testing.T) {
		a, b := start(t, nil), start(t, nil)
		s, r := pair(t, a, b)
		in := recv(r, register(t, r, buffer(t, 10), 10))
		in.step()
		one(b).end(report.Errorf(report.Network, "control connection", "reading: %w", syscall.ETIMEDOUT).With("the peer"))
		drive(t, "a receive without its network", in)
		if in.code != 100+int32(report.Network) || b.log.Count("WARN control connection with the peer", "timed out") != 1 {
			t.Errorf("code %d, log %q", in.code, b.log.Lines())
		}
		_ = s
	})
	t.Run("closed while the streams stand", func(t *testing.T) {
		a, b := start(t, nil), start(t, nil)
		s, r := pair(t, a, b)
		one(b).conn.CloseWrite() // what a peer does that breaks off only this connection
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
		old.conn.Close()
		eventually(t, "both sides noticed", func() bool {
			a.sessions.mu.Lock()
			defer a.sessions.mu.Unlock()
			return len(a.sessions.out) == 0
		})
		s, r := pair(t, a, b)
		move(t, s, r, 100)
	})
	t.Run("unused, it says bye", func(t *testing.T) {
		a, b := start(t, nil), start(t, nil)
		s, r := pair(t, a, b)
		s.Close()
		r.Close()
		var mine *session
		a.sessions.mu.Lock()
		for _, o := range a.sessions.out {
			mine = o.s
		}
		a.sessions.mu.Unlock()
		mine.bye() // what the timer does
		eventually(t, "both sides forgot it", func() bool { return one(b) == nil })
		for _, p := range []*process{a, b} {
			if n := p.log.Count("WARN"); n != 0 {
				t.Errorf("%q", p.log.Lines())
			}
		}
	})
}

// A control connection that ends while it is being opened is not there for the next connect.
func TestControlConnectionEndsAtOnce(t *testing.T) {
	a := start(t, nil)
	peer := wire.Hello{Build: "test", Process: wire.ProcessID{1}}
	for range 20 {
		k, _ := connPair(t)
		gone := make(chan struct{})
		s, err := a.sessions.get(t.Context(), peer.Process, func() (*session, error) {
			s := newSession(a.Core, k, &peer, nil, true)
			go func() {
				defer close(gone)
				s.end(report.Errorf(report.Peer, "test", "over"))
			}()
			return s, nil
		})
		<-gone
		if err == nil && s.hold() {
			t.Error("a session that is over can be held")
		}
		a.sessions.mu.Lock()
		left := len(a.sessions.out)
		a.sessions.mu.Unlock()
		if left != 0 {
			t.Fatalf("%d are left", left)
		}
	}
}

// A panic in the way of one connect must not keep the next from its own.
func TestControlConnectionWhoseOpeningPanics(t *testing.T) {
	a := start(t, nil)
	open := func(what func()) (err error) {
		defer func() { recover() }()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err = a.sessions.get(ctx, wire.ProcessID{1}, func() (*session, error) { what(); return nil, errOver })
		return err
	}
	open(func() { panic("a defect") })
	if err := open(func() {}); err != errOver {
		t.Error(err)
	}
}

// No control connection outlives its core, whichever side opened it and however late.
func TestControlConnectionOfAClosedCore(t *testing.T) {
	a := start(t, nil)
	peer := wire.Hello{Build: "test", Process: wire.ProcessID{1}}
	k, _ := connPair(t)
	active := newSession(a.Core, k, &peer, nil, true)
	_, err := a.sessions.get(t.Context(), peer.Process, func() (*session, error) {
		a.Core.Close()
		return active, nil
	})
	k, _ = connPair(t)
	passive := newSession(a.Core, k, &peer, nil, false)
	if err := a.sessions.claim(passive); err != nil {
		t.Error(err)
	}
	if err == nil || active.over() == nil || passive.over() == nil {
		t.Errorf("%v; opened by this process: %v, by another: %v", err, active.over(), passive.over())
	}
	a.sessions.mu.Lock()
	defer a.sessions.mu.Unlock()
	if n := len(a.sessions.in) + len(a.sessions.out); n != 0 {
		t.Errorf("%d are left", n)
	}
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

// What is said of a peer's silence is how long it was, not how long it may be.
func TestSilenceIsMeasured(t *testing.T) {
	begin := time.Now()
	a := start(t, nil)
	k, in := connPair(t)
	s := newSession(a.Core, k, &wire.Hello{Build: "test"}, nil, false)
	defer s.end(report.Errorf(report.Host, "test", "over"))
	if _, err := in.Write([]byte{0}); err != nil {
		t.Fatal(err)
	}
	text := s.broken("reading", syscall.ETIMEDOUT).Remedy
	_, after, _ := strings.Cut(text, "did not answer for ")
	number, _, _ := strings.Cut(after, ":")
	if d, err := time.ParseDuration(number); err != nil || d > time.Since(begin).Round(100*time.Millisecond) {
		t.Errorf("after %v: %q", time.Since(begin), text)
	}
}

// What the kernel takes at once is with it when tellLater returns: a process that ends then, by whatever means, has told its peer.
func TestToldBeforeTheCallReturns(t *testing.T) {
	a := start(t, nil)
	k, in := connPair(t)
	s := newSession(a.Core, k, &wire.Hello{Build: "test"}, nil, false)
	defer s.end(report.Errorf(report.Host, "test", "over"))
	go io.Copy(io.Discard, in)
	for range 500 {
		s.tellLater(&wire.Failed{Reason: "a cause"})
		s.out.Lock()
		left := len(s.out.queue)
		writing := s.out.writing
		s.out.Unlock()
		if left > 0 || writing {
			t.Fatalf("%d bytes are this process's still", left)
		}
	}
}

// A message that the kernel has not taken yet keeps the process from exiting, for a moment.
func TestExitWaitsForMessages(t *testing.T) {
	a := start(t, nil)
	k, in := connPair(t)
	s := newSession(a.Core, k, &wire.Hello{Build: "test"}, nil, false)
	defer s.end(report.Errorf(report.Host, "test", "over"))
	waits := func() int {
		a.reaper.mu.Lock()
		defer a.reaper.mu.Unlock()
		return a.reaper.others
	}
	full := func() bool {
		s.out.Lock()
		defer s.out.Unlock()
		return s.out.writing && len(s.out.queue) > 1<<18 // what waits behind what is being written
	}
	for stuck := false; !stuck; stuck = full() {
		for !full() {
			s.tellLater(&wire.Failed{Reason: strings.Repeat("x", 500)})
		}
		time.Sleep(10 * time.Millisecond) // it may only have been slow
	}
	if waits() == 0 {
		t.Error("nothing holds the process")
	}
	go io.Copy(io.Discard, in)
	eventually(t, "all is sent", func() bool { return waits() == 0 })
}
