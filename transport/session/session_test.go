package session

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"weft/internal/conns"
	"weft/internal/report"
	"weft/transport/rendezvous"
	"weft/transport/wire"
)

// process is one that has sessions, and no comms.
type process struct {
	*All
	log     report.Recorder
	lingers atomic.Int64
}

// start begins a process whose T is long, so that nothing depends on how fast this machine is.
func start() *process {
	p := &process{}
	noise := rendezvous.NewNoise(&p.log)
	p.All = NewAll(Config{
		Log: &p.log, Timeout: 50 * time.Minute, Build: "test",
		Noise:   noise,
		Sockets: rendezvous.NewSockets(rendezvous.NewNetwork(nil, &p.log, nil), noise),
		Lingers: func(n int) { p.lingers.Add(int64(n)) },
		Coming:  func(*wire.ProcessID) bool { return false },
		Attach:  func(*Member, *wire.Attach) error { return errors.New("no comm is set up here") },
		Forget:  func(*Session) {},
		Ended:   func([]Comm, *report.Error) {},
	})
	return p
}

// opened is a session of a process, until the test ends, and the peer's end of its connection.
func opened(t *testing.T) (a *process, s *Session, in *rendezvous.Conn) {
	t.Helper()
	a = start()
	k, in := conns.Pair(t)
	s = a.New(k, &wire.Hello{Build: "test"}, nil, false)
	t.Cleanup(func() { s.End(report.Errorf(report.Host, "test", "over")) })
	return a, s, in
}

// eventually waits for something that comes about in the background.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 30 s", what)
		}
	}
}

var errOver = errors.New("it is over")

// A control connection that ends while it is being opened is not there for the next connect.
func TestControlConnectionEndsAtOnce(t *testing.T) {
	a := start()
	peer := wire.Hello{Build: "test", Process: wire.ProcessID{1}}
	for range 20 {
		k, _ := conns.Pair(t)
		gone := make(chan struct{})
		s, err := a.Get(t.Context(), peer.Process, func() (*Session, error) {
			s := a.New(k, &peer, nil, true)
			go func() {
				defer close(gone)
				s.End(report.Errorf(report.Peer, "test", "over"))
			}()
			return s, nil
		})
		<-gone
		if err == nil && s.Hold() {
			t.Error("a session that is over can be held")
		}
		a.mu.Lock()
		left := len(a.out)
		a.mu.Unlock()
		if left != 0 {
			t.Fatalf("%d are left", left)
		}
	}
}

// A panic in the way of one connect must not keep the next from its own.
func TestControlConnectionWhoseOpeningPanics(t *testing.T) {
	a := start()
	open := func(what func()) (err error) {
		defer func() { recover() }()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err = a.Get(ctx, wire.ProcessID{1}, func() (*Session, error) { what(); return nil, errOver })
		return err
	}
	open(func() { panic("a defect") })
	if err := open(func() {}); err != errOver {
		t.Error(err)
	}
}

// No control connection outlives its process' transport, whichever side opened it and however late.
func TestControlConnectionOfAClosedProcess(t *testing.T) {
	a := start()
	peer := wire.Hello{Build: "test", Process: wire.ProcessID{1}}
	k, _ := conns.Pair(t)
	active := a.New(k, &peer, nil, true)
	_, err := a.Get(t.Context(), peer.Process, func() (*Session, error) {
		a.CloseAll()
		return active, nil
	})
	k, _ = conns.Pair(t)
	passive := a.New(k, &peer, nil, false)
	if err := a.Claim(passive); err != nil {
		t.Error(err)
	}
	if err == nil || active.Over() == nil || passive.Over() == nil {
		t.Errorf("%v; opened by this process: %v, by another: %v", err, active.Over(), passive.Over())
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.in) + len(a.out); n != 0 {
		t.Errorf("%d are left", n)
	}
}

// A control connection may be closed for others while it has no comm.
func TestControlConnectionMakesRoom(t *testing.T) {
	a := start()
	a.cfg.Attach = func(*Member, *wire.Attach) error { return nil }
	k, _ := conns.Pair(t)
	s := a.New(k, &wire.Hello{Build: "test"}, nil, false)
	defer s.End(report.Errorf(report.Host, "test", "over"))
	a.cfg.Sockets.Unused(k) // as who has just proven its token
	s.Vacant(time.Hour)
	crowd := func() { // others take every place of this address
		for range 1024 {
			other, far := conns.Pair(t)
			far.Close()
			a.cfg.Sockets.Unused(other)
		}
	}
	if err := s.onAttach(&wire.Attach{Header: wire.Header{Comm: 7}}); err != nil {
		t.Fatal(err)
	}
	crowd()
	if k.Life.Err() != nil {
		t.Fatal("it was closed with its comm")
	}
	s.Leave(s.members[7])
	crowd()
	if k.Life.Err() == nil {
		t.Error("it is open still")
	}
}

// What holds a control connection is counted.
func TestLastHoldOfAControlConnection(t *testing.T) {
	a := start()
	k, _ := conns.Pair(t)
	s := a.New(k, &wire.Hello{Build: "test"}, nil, true)
	defer s.End(report.Errorf(report.Host, "test", "over"))
	for range 2 {
		if !s.Hold() {
			t.Fatal("it cannot be held")
		}
	}
	if s.Release() || s.idle != nil {
		t.Error("it is let go, and held still")
	}
	if !s.Release() || s.idle == nil {
		t.Error("nobody holds it, and it does not end")
	}
}

// What is said of a peer's silence is how long it was, not how long it may be.
func TestSilenceIsMeasured(t *testing.T) {
	begin := time.Now()
	_, s, in := opened(t)
	if _, err := in.Write([]byte{0}); err != nil {
		t.Fatal(err)
	}
	text := s.Broken("reading", syscall.ETIMEDOUT).Remedy
	_, after, _ := strings.Cut(text, "did not answer for ")
	number, _, _ := strings.Cut(after, ":")
	if d, err := time.ParseDuration(number); err != nil || d > time.Since(begin).Round(100*time.Millisecond) {
		t.Errorf("after %v: %q", time.Since(begin), text)
	}
}

// What the kernel takes at once is with it when TellLater returns: a process that ends then, by whatever means, has told its peer.
func TestToldBeforeTheCallReturns(t *testing.T) {
	_, s, in := opened(t)
	go io.Copy(io.Discard, in)
	for range 500 {
		s.TellLater(&wire.Failed{Reason: "a cause"})
		s.out.Lock()
		left := len(s.out.queue)
		writing := s.out.writing
		s.out.Unlock()
		if left > 0 || writing {
			t.Fatalf("%d bytes are this process's still", left)
		}
	}
}

// So it is while another waits for others to join: nobody who is in a hurry waits for it.
func TestTheHurriedWriteForOthers(t *testing.T) {
	a, s, in := opened(t)
	go io.Copy(io.Discard, in)
	for range 500 {
		if m := (&wire.Failed{Reason: "a cause"}); !s.enqueue(m, true) || s.enqueue(m, true) { // as TellTogether, before its turn comes
			t.Fatal("none, or two, are to write for all that join")
		}
		s.TellLater(&wire.Failed{Reason: "a cause"})
		s.out.Lock()
		left, writing, gathers := len(s.out.queue), s.out.writing, s.out.gathers
		s.out.Unlock()
		if left > 0 || writing || gathers || a.lingers.Load() != 0 {
			t.Fatalf("%d bytes are this process's still (writing %v, gathers %v), and %d hold it", left, writing, gathers, a.lingers.Load())
		}
	}
}

// Whoever tells something, and however, it arrives, once.
func TestAllThatIsToldArrives(t *testing.T) {
	a, s, in := opened(t)
	tells := []func(Frame){s.Tell, s.TellTogether, s.TellTogether, s.TellLater}
	const each = 500
	for i := range 4 * len(tells) {
		go func() {
			for range each {
				tells[i%len(tells)](&wire.Failed{Reason: "a cause"})
			}
		}()
	}
	rd := wire.NewReader(in)
	in.SetDeadline(time.Now().Add(time.Minute))
	for n := range 4 * len(tells) * each {
		if _, err := rd.Next(); err != nil {
			t.Fatalf("message %d: %v", n, err)
		}
	}
	eventually(t, "nobody writes", func() bool { return a.lingers.Load() == 0 })
	s.out.Lock()
	defer s.out.Unlock()
	if len(s.out.queue) > 0 || s.out.writing || s.out.gathers {
		t.Errorf("%d bytes wait (writing %v, gathers %v)", len(s.out.queue), s.out.writing, s.out.gathers)
	}
}

// A message that the kernel has not taken yet keeps the process from exiting, for a moment.
func TestExitWaitsForMessages(t *testing.T) {
	a, s, in := opened(t)
	full := func() bool {
		s.out.Lock()
		defer s.out.Unlock()
		return s.out.writing && len(s.out.queue) > 1<<18 // what waits behind what is being written
	}
	for stuck := false; !stuck; stuck = full() {
		for !full() {
			s.TellLater(&wire.Failed{Reason: strings.Repeat("x", 500)})
		}
		time.Sleep(10 * time.Millisecond) // it may only have been slow
	}
	if a.lingers.Load() == 0 {
		t.Error("nothing holds the process")
	}
	go io.Copy(io.Discard, in)
	eventually(t, "all is sent", func() bool { return a.lingers.Load() == 0 })
}

// What a process said on one control connection is told where others end with it,
// in whatever order the two are read.
func TestLastWordIsHeard(t *testing.T) {
	const reason = "rxe0: packets of MTU 4096 are lost"
	for _, c := range []struct {
		name string
		last func(t *testing.T, broken, other io.WriteCloser, failed func(s *Session) []byte, on [2]*Session)
	}{
		{"on the same connection", func(t *testing.T, broken, other io.WriteCloser, failed func(*Session) []byte, on [2]*Session) {
			broken.Write(failed(on[0]))
			broken.Close()
			other.Close()
		}},
		{"on the other, which is read later", func(t *testing.T, broken, other io.WriteCloser, failed func(*Session) []byte, on [2]*Session) {
			broken.Close()
			<-on[0].heard
			other.Write(failed(on[1]))
			other.Close()
		}},
	} {
		for _, active := range []bool{true, false} {
			t.Run(c.name+map[bool]string{true: ", opened here", false: ", opened there"}[active], func(t *testing.T) {
				a := start()
				peer := wire.Hello{Build: "test", Process: wire.ProcessID{1}}
				here, farHere := conns.Pair(t)
				there, farThere := conns.Pair(t)
				out, in := a.New(here, &peer, nil, true), a.New(there, &peer, nil, false)
				if _, err := a.Get(t.Context(), peer.Process, func() (*Session, error) { return out, nil }); err != nil {
					t.Fatal(err)
				}
				if err := a.Claim(in); err != nil {
					t.Fatal(err)
				}
				for i, s := range []*Session{out, in} {
					s.ID = uint64(i + 1)
					s.Start(wire.NewReader(s.Conn))
				}
				failed := func(s *Session) []byte {
					b := (&wire.Failed{Header: wire.Header{Comm: 7}, Reason: reason}).Append(nil)
					wire.Stamp(b, s.ID, 1)
					return b
				}
				if active {
					c.last(t, farHere, farThere, failed, [2]*Session{out, in})
				} else {
					c.last(t, farThere, farHere, failed, [2]*Session{in, out})
				}
				for _, s := range []*Session{out, in} {
					eventually(t, "both have ended", func() bool { return s.Over() != nil })
					if err := s.Over(); !strings.Contains(err.Error(), "EOF, after the peer gave a connection up: "+reason+"; the peer's process ended") {
						t.Error(err)
					}
				}
			})
		}
	}
}

// Who has no more comms with a process says bye, which is no news for either.
func TestBye(t *testing.T) {
	a, b := start(), start()
	here, there := wire.ProcessID{1}, wire.ProcessID{2}
	k, other := conns.Pair(t)
	mine := a.New(k, &wire.Hello{Build: "test", Process: there}, nil, true)
	if _, err := a.Get(t.Context(), there, func() (*Session, error) { return mine, nil }); err != nil {
		t.Fatal(err)
	}
	theirs := b.New(other, &wire.Hello{Build: "test", Process: here}, nil, false)
	if err := b.Claim(theirs); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Session{mine, theirs} {
		s.ID = 1
		s.Start(wire.NewReader(s.Conn))
	}
	mine.Release()
	mine.bye() // what the timer does
	eventually(t, "both sides forgot it", func() bool {
		in, _ := b.open()
		_, out := a.open()
		return len(in)+len(out) == 0 && mine.Over() != nil && theirs.Over() != nil
	})
	for _, p := range []*process{a, b} {
		if lines := p.log.Lines(); len(lines) != 0 {
			t.Errorf("%q", lines)
		}
	}
}
