package transport

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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
	comm, inHello, again := frame1(h, wire.RoleComm), frame1(h, wire.RoleComm), frame1(h, wire.RoleComm)
	control, late := frame1(h, wire.RoleControl), frame1(parsed(t, past), wire.RoleComm)
	hello := peerOf(t, handle).Hello()
	for _, tc := range []struct {
		name string
		send []byte
		hear bool // the listener answers
	}{
		{"before frame 1", nil, false},
		{"before hello", comm.Append(nil), false},
		{"in hello", append(inHello.Append(nil), hello[:20]...), false},
		{"before frame 3", append(again.Append(nil), hello...), true},
		{"a control connection before frame 3", control.Append(nil), true},
		{"to a listen that was closed", late.Append(nil), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := client(t, h)
			c.Write(tc.send)
			if tc.hear {
				if _, err := io.ReadFull(c, make([]byte, wire.Frame2Size)); err != nil {
					t.Fatal(err)
				}
			}
			c.(*net.TCPConn).CloseWrite()
			if tc.hear {
				drained(t, c)
			} else {
				silent(t, c)
			}
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
	first.Write(append(f.Append(nil), peerOf(t, handle).Hello()...))
	if _, err := io.ReadFull(first, make([]byte, wire.Frame2Size)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		again := client(t, h)
		again.Write(append(f.Append(nil), peerOf(t, handle).Hello()...))
		silent(t, again)
	}
}

// drained requires that the listener closes c, whatever it says before.
func drained(t *testing.T, c net.Conn) {
	t.Helper()
	var timeout net.Error
	if _, err := io.Copy(io.Discard, c); errors.As(err, &timeout) && timeout.Timeout() {
		t.Error("still open at the test's limit")
	}
}

// Who has recorded handshakes, and has waited until the listen has forgotten their nonces, takes the place of nobody who goes on
// with his own: the oldest of those that have proven nothing else gives way.
func TestReplaysFillNoListen(t *testing.T) {
	b := start(t, map[string]string{"WEFT_TIMEOUT": "60"}) // all of them are here at once
	l, handle := b.listen(t, wire.HandleMax)
	h := parsed(t, handle)
	p := peerOf(t, handle)
	s := granted(t, p)
	proven := halfway(t, p)
	if err := s.Tell(p.Attach(proven, s, 1)); err != nil {
		t.Fatal(err)
	}
	setups := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.setup)
	}
	for from, n := range []int{waitingLimit / 2, waitingLimit/2 + 10} { // an address has so many places for what carries no comm
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+from))}, Timeout: testLimit}
		for range n {
			c, err := d.Dial("tcp", h.Addrs[0].AddrPort().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			f1 := frame1(h, wire.RoleComm)
			c.Write(append(f1.Append(nil), p.Hello()...))
			if _, err := io.ReadFull(c, make([]byte, wire.Frame2Size)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := setups(); n != waitingLimit {
		t.Errorf("%d comms are being set up, want %d", n, waitingLimit)
	}
	if _, err := start(t, nil).connect(handle); err != nil {
		t.Fatal(err)
	}
	last := wire.Go{Header: wire.Header{Session: s.Session, Comm: 1}}
	proven.Write(last.Append(p.Confirm(proven)))
	for range 2 {
		if c, err := accept(l); err != nil || c == nil {
			t.Fatal(c, err)
		}
	}
}

// script writes what begins a comm, frame 1 and first, and what after makes of frame 2; nil: nothing more.
func script(t *testing.T, h wire.Handle, c net.Conn, first []byte, after func(f1 *wire.Frame1, f2 *wire.Frame2) []byte) {
	t.Helper()
	f1 := frame1(h, wire.RoleComm)
	c.Write(append(f1.Append(nil), first...))
	if after == nil {
		return
	}
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
	confirm := func(f1 *wire.Frame1, f2 *wire.Frame2) []byte {
		var f3 wire.Frame3
		f3.Sign(&h.Token, f1, f2)
		return f3.Append(nil)
	}
	hello, alien := peerOf(t, handle).Hello(), wire.Hello{Speaks: wire.Version + 1, Process: wire.ProcessID{1}, Host: "elsewhere"}
	long := slices.Clone(hello)
	long[0], long[1] = 0xff, 0xff
	last := (&wire.Go{}).Append(nil)
	type then = func(f1 *wire.Frame1, f2 *wire.Frame2) []byte
	for _, tc := range []struct {
		name  string
		first []byte
		then  then
	}{
		{"silence behind frame 1", nil, nil},
		{"oversized hello", long, nil},
		{"go in place of hello", last, nil},
		{"go right behind hello", slices.Concat(hello, last), nil},
		{"another wire version", alien.Append(nil), nil},
		{"silence behind lanes", hello, nil},
		{"frame 3 without the token", hello, func(*wire.Frame1, *wire.Frame2) []byte { return append(make([]byte, wire.Frame3Size), last...) }},
		{"silence behind frame 3", hello, confirm},
		{"hello in place of go", hello, func(a *wire.Frame1, b *wire.Frame2) []byte { return append(confirm(a, b), hello...) }},
		{"oversized frame in place of go", hello, func(a *wire.Frame1, b *wire.Frame2) []byte { return append(confirm(a, b), long...) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := client(t, h)
			script(t, h, c, tc.first, tc.then)
			drained(t, c)
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
	c := client(t, h)
	var f3 wire.Frame3
	script(t, h, c, peerOf(t, handle).Hello(), func(f1 *wire.Frame1, f2 *wire.Frame2) []byte {
		f3.Sign(&h.Token, f1, f2)
		return nil
	})
	rd := wire.NewReader(c)
	for range 2 { // its hello and lanes
		if _, err := rd.NextPadded(); err != nil {
			t.Fatal(err)
		}
	}
	m := wire.Go{Header: wire.Header{Session: 1, Comm: 1}}
	c.Write(m.Append(f3.Append(nil)))
	if got, err := accept(l); got != nil || err == nil || !strings.Contains(err.Error(), "not complete after 1s") {
		t.Errorf("%v, %v; %q", got, err, b.log.Lines())
	}
}

func TestCutAtEveryByte(t *testing.T) {
	b := start(t, nil)
	l, handle := b.listen(t, wire.HandleMax)
	h := parsed(t, handle)
	hello := peerOf(t, handle).Hello()
	for n := range wire.Frame1Size + len(hello) {
		c := client(t, h)
		f1 := frame1(h, wire.RoleComm)
		c.Write(append(f1.Append(nil), hello...)[:n])
		c.Close()
	}
	last := (&wire.Go{}).Append(nil)
	for n := range wire.Frame3Size + len(last) {
		c := client(t, h)
		script(t, h, c, hello, func(f1 *wire.Frame1, f2 *wire.Frame2) []byte {
			var f3 wire.Frame3
			f3.Sign(&h.Token, f1, f2)
			return append(f3.Append(nil), last...)[:n]
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
