package transport

import (
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/hostile"
	"weft/transport/wire"
)

// peerOf is somebody who has the handle of a listen.
func peerOf(t testing.TB, handle []byte) *hostile.Peer {
	t.Helper()
	return hostile.New(parsed(t, handle), testLimit)
}

func granted(t testing.TB, p *hostile.Peer) *hostile.Control {
	t.Helper()
	s, err := p.Control()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func halfway(t testing.TB, p *hostile.Peer) *hostile.Conn {
	t.Helper()
	c, err := p.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// accepted is how many connections to a listen of this process are open.
func accepted(t testing.TB, handle []byte) int {
	t.Helper()
	in, _ := connections(t, handle)
	return in
}

// connections counts those to a listen that are open in this process: accepted here, and opened here.
func connections(t testing.TB, handle []byte) (in, out int) {
	t.Helper()
	port := int(parsed(t, handle).Addrs[0].Port)
	at := func(a unix.Sockaddr) int {
		if v4, is := a.(*unix.SockaddrInet4); is && v4.Port == port {
			return 1
		}
		return 0
	}
	for _, fd := range descriptors(t) {
		here, _ := unix.Getsockname(fd)
		if there, err := unix.Getpeername(fd); err == nil {
			in, out = in+at(here), out+at(there)
		}
	}
	return in, out
}

// listening is how many listening sockets of the network this process has.
func listening(t testing.TB) (n int) {
	t.Helper()
	for _, fd := range descriptors(t) {
		here, _ := unix.Getsockname(fd)
		listens, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
		switch here.(type) {
		case *unix.SockaddrInet4, *unix.SockaddrInet6:
			n += listens
		}
	}
	return n
}

// descriptors are those that this process has open.
func descriptors(t testing.TB) (all []int) {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		fd, _ := strconv.Atoi(f.Name())
		all = append(all, fd)
	}
	return all
}

// A process has one control connection here, however often it asks. The next one
// is granted once the one before it has ended.
func TestOneSessionOfAProcess(t *testing.T) {
	b := start(t, map[string]string{"WEFT_TIMEOUT": "2"})
	l, handle := b.listen(t, wire.HandleMax)
	p := peerOf(t, handle)
	first := granted(t, p)
	c, err := p.Comm(first, 1) // so that it stays
	if err != nil {
		t.Fatal(err)
	}
	if _, err := accept(l); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Control(); err != hostile.ErrRejected {
		t.Errorf("a second control connection: %v", err)
	}
	if b.sessions.From(p.Process, first.Session) == nil || first.Drained(time.Millisecond) {
		t.Error("the first has ended")
	}
	if n := accepted(t, handle); n != 2 {
		t.Errorf("%d connections, beside its comm's", n-1)
	}
	again := make(chan error)
	go func() {
		s, err := p.Control()
		if err == nil {
			s.Close()
		}
		again <- err
	}()
	c.Close()
	first.Close()
	if err := <-again; err != nil {
		t.Errorf("the first has ended: %v", err)
	}
}

// A control connection that carries nothing ends: at once when it stays without a
// comm, later when it has lost its last, for the connecting side keeps it a while.
func TestSessionWithoutComms(t *testing.T) {
	b := start(t, map[string]string{"WEFT_TIMEOUT": "1"})
	l, handle := b.listen(t, wire.HandleMax)
	t.Run("never had one", func(t *testing.T) {
		if !granted(t, peerOf(t, handle)).Drained(testLimit) || accepted(t, handle) != 0 {
			t.Error("it is there still")
		}
	})
	t.Run("attaches what is none", func(t *testing.T) {
		s := granted(t, peerOf(t, handle))
		for id := range uint64(100) {
			s.Tell(&wire.Attach{Header: wire.Header{Comm: id}})
		}
		if !s.Drained(testLimit) {
			t.Error("it is there still")
		}
	})
	t.Run("has lost its last", func(t *testing.T) {
		p := peerOf(t, handle)
		s := granted(t, p)
		c, err := p.Comm(s, 7)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		r, err := accept(l)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(b.timeout + b.timeout/2) // a session with a comm outlives the time for its first
		here := b.sessions.From(p.Process, s.Session)
		if here == nil || here.Over() != nil {
			t.Fatal("it has ended")
		}
		c.Close()
		r.Close()
		eventually(t, "it carries nothing", func() bool { return !here.Has(7) })
		here.Vacant(0) // as if it had been for a while
		if !s.Drained(testLimit) {
			t.Error("it is there still")
		}
		eventually(t, "nothing is left of it", func() bool { return accepted(t, handle) == 0 })
	})
	eventually(t, "a line for each", func() bool { return b.log.Count("INFO NET control connection", "no connection uses it") == 3 })
}

// What somebody has overheard of a handshake, and the token of another listen, do
// not let him displace the comm, nor take it.
func TestOverheardHandshake(t *testing.T) {
	b := start(t, nil)
	l, handle := b.listen(t, wire.HandleMax)
	_, other := b.listen(t, wire.HandleMax)
	victim, thief := peerOf(t, handle), peerOf(t, other)
	c := halfway(t, victim)
	thief.Process = victim.Process
	t.Run("the nonce again", func(t *testing.T) {
		k, err := thief.Dial()
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		k.F1.Nonce = c.F1.Nonce
		if err := thief.Ask(k, wire.RoleComm); err != nil {
			t.Fatal(err)
		}
		k.NextPadded() // hello: it is being set up
	})
	t.Run("an attach", func(t *testing.T) {
		s := granted(t, thief)
		defer s.Close()
		s.Tell(thief.Attach(c, s, 5))
		b, err := s.Next()
		if err != nil || wire.KindOf(b) != wire.KindFailed {
			t.Errorf("%v, message of %v", err, wire.KindOf(b))
		}
	})
	s := granted(t, victim)
	if err := victim.Finish(c, s, 5); err != nil {
		t.Fatal(err)
	}
	if _, err := accept(l); err != nil {
		t.Fatal(err)
	}
}

// Refusals of groups that are not open end the comm: with one line, whatever their number.
func TestRefusalOfAGroupThatIsNotOpen(t *testing.T) {
	b := start(t, nil)
	l, handle := b.listen(t, wire.HandleMax)
	p := peerOf(t, handle)
	s := granted(t, p)
	c, err := p.Comm(s, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := accept(l)
	if err != nil {
		t.Fatal(err)
	}
	for seq := range uint64(2000) {
		s.Tell(&wire.Refused{Header: wire.Header{Comm: 3}, Seq: seq, Size: 2, Room: 1})
	}
	in := recv(r, register(t, r, buffer(t, 10), 10))
	drive(t, "a receive of a comm that broke the protocol", in)
	if n := b.log.Count("WARN", "refuses group 0, which is not open"); in.code == 0 || n != 1 {
		t.Errorf("code %d, %q", in.code, b.log.Lines())
	}
	s.CloseWrite()
	s.Drained(testLimit)
	if n := b.log.Count("WARN"); n != 1 {
		t.Errorf("%d warnings: %q", n, b.log.Lines())
	}
}
