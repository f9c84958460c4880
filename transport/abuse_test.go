package transport

import (
	"bytes"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"weft/transport/session"
	"weft/transport/wire"
)

// client is a connection to the first address of a handle, made by somebody else.
func client(t testing.TB, h wire.Handle) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", h.Addrs[0].AddrPort().String(), testLimit)
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(testLimit))
	t.Cleanup(func() { c.Close() })
	return c
}

// silent requires that the listener closes c without a word.
func silent(t *testing.T, c net.Conn) {
	t.Helper()
	b, err := io.ReadAll(c)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		t.Error("still open at the test's limit")
	}
	if len(b) != 0 {
		t.Errorf("the listener said % x", b)
	}
}

func parsed(t testing.TB, handle []byte) wire.Handle {
	t.Helper()
	h, err := wire.ParseHandle(handle)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func frame1(h wire.Handle, role wire.Role) wire.Frame1 {
	f := wire.Frame1{Version: wire.Version, Role: role, ListenID: h.ListenID, Nonce: wire.NewNonce()}
	f.Sign(&h.Token)
	return f
}

func TestStrangersGetSilence(t *testing.T) {
	b := start(t, nil)
	l, handle := b.listen(t, wire.HandleMax)
	h := parsed(t, handle)
	good := frame1(h, wire.RoleComm)
	wrongToken := good
	wrongToken.Sign(&wire.Token{1})
	otherListen := good
	otherListen.ListenID++
	otherListen.Sign(&h.Token)
	badRole := good
	badRole.Role = 9
	badRole.Sign(&h.Token)
	for _, tc := range []struct {
		name string
		send []byte
		half bool // close our side, as a client that was cut off
	}{
		{"wrong token", wrongToken.Append(nil), false},
		{"unknown listen", otherListen.Append(nil), false},
		{"unknown role", badRole.Append(nil), false},
		{"HTTP", []byte("GET /metrics HTTP/1.1\r\n\r\n"), false},
		{"TLS hello", append([]byte{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3}, make([]byte, 300)...), false},
		{"a megabyte", bytes.Repeat([]byte{0xa5}, 1<<20), false},
		{"one wrong byte", []byte{'x'}, false},
		{"cut in frame 1", good.Append(nil)[:63], true},
		{"half a magic", []byte("wf"), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := client(t, h)
			c.Write(tc.send)
			if tc.half {
				c.(*net.TCPConn).CloseWrite()
			}
			silent(t, c)
		})
	}
	if n := b.log.Count("INFO NET listener", "127.0.0.1"); n != 1 {
		t.Errorf("%d lines for one source: %q", n, b.log.Lines())
	}
	a := start(t, nil)
	if _, err := a.connect(handle); err != nil {
		t.Fatal(err)
	}
	if _, err := accept(l); err != nil {
		t.Fatal(err)
	}
}

// A connect makes several attempts, of which all but the quickest end early, or come when the host has closed the listen.
func TestAttemptsGivenUpAreNoNews(t *testing.T) {
	b := start(t, nil)
	_, handle := b.listen(t, wire.HandleMax)
	h := parsed(t, handle)
	over, past := b.listen(t, wire.HandleMax)
	if err := over.Close(); err != nil {
		t.Fatal(err)
	}
	comm, control, late := frame1(h, wire.RoleComm), frame1(h, wire.RoleControl), frame1(parsed(t, past), wire.RoleComm)
	for _, tc := range []struct {
		name string
		send []byte
		read int
	}{
		{"before frame 1", nil, 0},
		{"before frame 3", comm.Append(nil), wire.Frame2Size},
		{"a control connection before frame 3", control.Append(nil), wire.Frame2Size},
		{"to a listen that was closed", late.Append(nil), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := client(t, h)
			c.Write(tc.send)
			if _, err := io.ReadFull(c, make([]byte, tc.read)); err != nil {
				t.Fatal(err)
			}
			c.(*net.TCPConn).CloseWrite()
			silent(t, c)
			if n := b.log.Count("", "listener") + b.log.Count("", "accept"); n != 0 {
				t.Errorf("%d lines: %q", n, b.log.Lines())
			}
		})
	}
}

func TestReplayIsRefused(t *testing.T) {
	b := start(t, nil)
	_, handle := b.listen(t, wire.HandleMax)
	h := parsed(t, handle)
	f := frame1(h, wire.RoleComm)
	first := client(t, h)
	first.Write(f.Append(nil))
	if _, err := io.ReadFull(first, make([]byte, wire.Frame2Size)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		again := client(t, h)
		again.Write(f.Append(nil))
		silent(t, again)
	}
}

// script is what a well-behaved connecting side of a comm writes, by stage.
func script(t *testing.T, h wire.Handle, c net.Conn, after func(f1 *wire.Frame1, f2 *wire.Frame2) []byte) {
	t.Helper()
	f1 := frame1(h, wire.RoleComm)
	c.Write(f1.Append(nil))
	b := make([]byte, wire.Frame2Size)
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatal(err)
	}
	f2, err := wire.ParseFrame2(b)
	if err != nil {
		t.Fatal(err)
	}
	c.Write(after(&f1, &f2))
}

func TestPeersThatBreakTheProtocol(t *testing.T) {
	b := start(t, map[string]string{"WEFT_TIMEOUT": "1"})
	l, handle := b.listen(t, wire.HandleMax)
	h := parsed(t, handle)
	hello := wire.Hello{Speaks: wire.Version, Process: wire.ProcessID{1}, Host: "elsewhere"}
	confirm := func(f1 *wire.Frame1, f2 *wire.Frame2) []byte {
		var f3 wire.Frame3
		f3.Sign(&h.Token, f1, f2)
		return f3.Append(nil)
	}
	long := hello.Append(nil)
	long[0], long[1] = 0xff, 0xff
	alien := hello
	alien.Speaks = wire.Version + 1
	for _, tc := range []struct {
		name string
		then func(f1 *wire.Frame1, f2 *wire.Frame2) []byte
	}{
		{"frame 3 without the token", func(*wire.Frame1, *wire.Frame2) []byte { return make([]byte, wire.Frame3Size) }},
		{"oversized frame", func(a *wire.Frame1, b *wire.Frame2) []byte { return append(confirm(a, b), long...) }},
		{"go before hello", func(a *wire.Frame1, b *wire.Frame2) []byte {
			m := wire.Go{}
			return m.Append(confirm(a, b))
		}},
		{"go right behind hello", func(a *wire.Frame1, b *wire.Frame2) []byte {
			m := wire.Go{}
			return m.Append(append(confirm(a, b), hello.Append(nil)...))
		}},
		{"another wire version", func(a *wire.Frame1, b *wire.Frame2) []byte { return append(confirm(a, b), alien.Append(nil)...) }},
		{"silence after hello", func(a *wire.Frame1, b *wire.Frame2) []byte { return append(confirm(a, b), hello.Append(nil)...) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := client(t, h)
			script(t, h, c, tc.then)
			if _, err := io.Copy(io.Discard, c); err != nil {
				var timeout net.Error
				if errors.As(err, &timeout) && timeout.Timeout() {
					t.Error("still open at the test's limit")
				}
			}
		})
	}
	if b.log.Count("WARN handshake", "wire version 1", "wire version 2", "elsewhere") != 1 {
		t.Errorf("log %q", b.log.Lines())
	}
	if c, err := l.Accept(); c != nil || err != nil {
		t.Errorf("accepted %v, %v", c, err)
	}
	b.inbound.Lock()
	if n := len(b.inbound.byNonce); n != 0 {
		t.Errorf("%d comms are still being set up", n)
	}
	b.inbound.Unlock()
	send, err := start(t, nil).connect(handle)
	if err != nil || send == nil {
		t.Fatal(err)
	}
}

// A peer that says go has its comm. If the rest never comes, the host that accepts must not wait for ever.
func TestAcceptHearsOfAPeerThatStopsBehindGo(t *testing.T) {
	b := start(t, map[string]string{"WEFT_TIMEOUT": "1"})
	l, handle := b.listen(t, wire.HandleMax)
	h := parsed(t, handle)
	hello := wire.Hello{Speaks: wire.Version, Process: wire.ProcessID{1}, Host: "elsewhere"}
	c := client(t, h)
	script(t, h, c, func(f1 *wire.Frame1, f2 *wire.Frame2) []byte {
		var f3 wire.Frame3
		f3.Sign(&h.Token, f1, f2)
		return append(f3.Append(nil), hello.Append(nil)...)
	})
	rd := wire.NewReader(c)
	for range 2 { // its hello and lanes
		if _, err := rd.NextPadded(); err != nil {
			t.Fatal(err)
		}
	}
	m := wire.Go{Header: wire.Header{Session: 1, Comm: 1}}
	c.Write(m.Append(nil))
	if got, err := accept(l); got != nil || err == nil || !strings.Contains(err.Error(), "not complete after 1s") {
		t.Errorf("%v, %v; %q", got, err, b.log.Lines())
	}
}

func TestCutAtEveryByte(t *testing.T) {
	b := start(t, nil)
	l, handle := b.listen(t, wire.HandleMax)
	h := parsed(t, handle)
	hello := wire.Hello{Speaks: wire.Version, Host: "elsewhere"}
	f1 := frame1(h, wire.RoleComm)
	for n := range wire.Frame1Size {
		c := client(t, h)
		c.Write(f1.Append(nil)[:n])
		c.Close()
	}
	total := wire.Frame3Size + len(hello.Append(nil))
	for n := range total {
		c := client(t, h)
		script(t, h, c, func(f1 *wire.Frame1, f2 *wire.Frame2) []byte {
			var f3 wire.Frame3
			f3.Sign(&h.Token, f1, f2)
			return append(f3.Append(nil), hello.Append(nil)...)[:n]
		})
		c.(*net.TCPConn).SetLinger(0) // some with a reset instead of an end
		c.Close()
	}
	if _, err := start(t, nil).connect(handle); err != nil {
		t.Fatal(err)
	}
	if _, err := accept(l); err != nil {
		t.Fatal(err)
	}
}

// TestIdleClients holds 1,000 connections that say one byte and no more; a
// legitimate connect comes through meanwhile, and all of them are closed.
func TestIdleClients(t *testing.T) {
	b := start(t, nil)
	l, handle := b.listen(t, wire.HandleMax)
	h := parsed(t, handle)
	const n = 1000
	conns := make([]net.Conn, n)
	for i := range conns {
		conns[i] = client(t, h)
		conns[i].Write([]byte("w"))
	}
	begin := time.Now()
	send, err := start(t, nil).connect(handle)
	if err != nil || send == nil {
		t.Fatal(err)
	}
	if _, err := accept(l); err != nil {
		t.Fatal(err)
	}
	t.Logf("connected and accepted after %v beside %d idle clients", time.Since(begin), n)
	var wg sync.WaitGroup
	for _, c := range conns {
		wg.Go(func() { silent(t, c) })
	}
	wg.Wait()
	if lines := b.log.Count("INFO NET listener"); lines > 5 {
		t.Errorf("%d lines", lines)
	}
}

// A peer that lies about what it waits for, or asks without an end, is believed of itself: nothing grows, the log has a line or
// two, and the message that it sends in the end is taken.
func TestPeersThatLieAboutWaits(t *testing.T) {
	const many = 2000
	same := func(n int, m func(h wire.Header, i uint64) session.Frame) func(s *session.Session, h wire.Header) {
		return func(s *session.Session, h wire.Header) {
			for i := range n {
				s.Tell(m(h, uint64(i)))
			}
		}
	}
	roots := []uint8{wire.RootSilent, wire.RootOutside, wire.RootBusy, wire.RootPath, wire.RootDown, wire.RootBroken}
	for _, tc := range []struct {
		name string
		lies func(s *session.Session, h wire.Header)
		says string
	}{
		{"of comms that are not there", same(many, func(h wire.Header, i uint64) session.Frame {
			return &wire.WaitReply{Header: wire.Header{Comm: h.Comm + 1 + i}, Monitors: true, Why: wire.WaitSend, For: "n9:9", Root: wire.RootOutside, RootWho: "n9:9"}
		}), "that process does not reply, though its machine does"},
		{"of more than it has begun", same(1, func(h wire.Header, i uint64) session.Frame {
			return &wire.WaitReply{Header: h, Groups: 1<<64 - 1, Asks: true, Lacks: true, Owes: true, Moves: true, Monitors: true}
		}), "its NCCL has sent it, and it has not come"},
		{"of a chain as long as a name can be", same(1, func(h wire.Header, i uint64) session.Frame {
			return &wire.WaitReply{Header: h, Monitors: true, Why: wire.WaitSend, Millis: 1<<32 - 1, For: strings.Repeat("x", 500), RootAge: 1, Root: wire.RootSilent, RootWho: strings.Repeat("y", 500)}
		}), "its NCCL has sent nothing; that process runs and waits itself for xxx"},
		{"another each time", same(many, func(h wire.Header, i uint64) session.Frame {
			return &wire.WaitReply{Header: h, Monitors: true, Why: wire.WaitSend, For: "n9:9", Root: roots[i%6], RootWho: "n9:9"}
		}), "that process runs and waits itself for n9:9 to send"},
		{"asks", func(s *session.Session, h wire.Header) {
			same(many, func(h wire.Header, i uint64) session.Frame { return &wire.WaitAsk{Header: wire.Header{Comm: i << 40}} })(s, h)
			s.Tell(&wire.WaitReply{Header: h, Monitors: true})
		}, "its NCCL has sent nothing; that process runs and waits for nobody"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, b := start(t, nil), start(t, stallsSoon)
			a.serve[wire.KindWaitAsk] = func(s *session.Session, frame []byte) error {
				m, err := wire.ParseWaitAsk(frame)
				if err == nil {
					go tc.lies(s, m.Header)
				}
				return err
			}
			s, r := pair(t, a, b)
			move(t, s, r, 8)
			in := recv(r, register(t, r, buffer(t, 100), 100))
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			watching(b)
			pumped(t, "a line", func() bool { return lines(b, "receive from") > 0 }, in)
			runtime.GC()
			runtime.ReadMemStats(&after)
			if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
				t.Errorf("%d bytes more are in use", grown)
			}
			drive(t, "the message", send(s, register(t, s, buffer(t, 100), 100)), in)
			if n := lines(b); n > 4 || lines(b, "receive from", tc.says) == 0 || b.log.Count("WARN") != n {
				t.Errorf("%d lines: %q", n, b.log.Lines())
			}
		})
	}
}
