package faults

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"weft/internal/host"
	"weft/internal/hostile"
	"weft/transport/wire"
)

// addr is where the listener of a handle is reached.
func addr(t testing.TB, handle []byte) (wire.Handle, string) {
	t.Helper()
	h, err := wire.ParseHandle(handle)
	must(t, err, "handle")
	return h, h.Addrs[0].AddrPort().String()
}

func dial(t testing.TB, at string) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", at, patience/2)
	must(t, err, "dial")
	c.SetDeadline(time.Now().Add(patience / 2))
	t.Cleanup(func() { c.Close() })
	return c
}

func hello1(h wire.Handle, change func(*wire.Frame1)) []byte {
	f := wire.Frame1{Version: wire.Version, Role: wire.RoleComm, ListenID: h.ListenID}
	rand.Read(f.Nonce[:])
	if change != nil {
		change(&f)
	}
	f.Sign(&h.Token)
	return f.Append(nil)
}

// TestStrangers sends the listener what strangers send: each is closed without a
// word, the process lives, and whoever has the handle gets on.
func TestStrangers(t *testing.T) {
	b := start(t, "listening", newest)
	handle, lc := b.listen()
	h, at := addr(t, handle)
	wrong := h
	wrong.Token[0] ^= 1
	garbage := make([]byte, 1<<20)
	rand.Read(garbage)
	replayed := append(hello1(h, nil), hostile.New(h, patience).Hello()...)
	first := dial(t, at)
	first.Write(replayed)
	if _, err := io.ReadFull(first, make([]byte, wire.Frame2Size)); err != nil {
		t.Fatalf("no answer to a proof of the token: %v", err)
	}
	for _, c := range []struct {
		name string
		send []byte
		cut  bool // and hang up
	}{
		{"wrong token", hello1(wrong, nil), false},
		{"replay", replayed, false},
		{"unknown role", hello1(h, func(f *wire.Frame1) { f.Role = 77 }), false},
		{"unknown listener", hello1(h, func(f *wire.Frame1) { f.ListenID += 12345 }), false},
		{"garbage", garbage, false},
		{"garbage behind a good beginning", append(hello1(h, nil)[:8], garbage...), false},
		{"HTTP", []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), false},
		{"TLS", append([]byte{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3}, garbage[:400]...), false},
		{"nothing", nil, true},
		{"truncated", hello1(h, nil)[:40], true},
		{"one byte short", hello1(h, nil)[:wire.Frame1Size-1], true},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := dial(t, at)
			x.Write(c.send)
			if c.cut {
				x.(*net.TCPConn).CloseWrite()
			}
			got, err := io.ReadAll(x)
			if e, ok := err.(net.Error); ok && e.Timeout() {
				t.Error("still open")
			}
			if len(got) > 0 {
				t.Errorf("answered % x", got)
			}
		})
	}
	t.Run("wrong version", func(t *testing.T) { // told so after the proof, or closed at once
		x := dial(t, at)
		x.Write(hello1(h, func(f *wire.Frame1) { f.Version++ }))
		if _, err := io.Copy(io.Discard, x); err != nil {
			t.Errorf("not closed: %v", err)
		}
	})
	for _, say := range []struct {
		name string
		what []byte
	}{{"oversized frame", bytes.Repeat([]byte{0xff}, 4096)}, {"garbage", garbage}} {
		t.Run(say.name+" behind frame 1", func(t *testing.T) {
			x := dial(t, at)
			x.Write(append(hello1(h, nil), say.what...))
			closed(t, x)
		})
		t.Run(say.name+" behind frame 3", func(t *testing.T) { prove(t, h, at, say.what) })
	}
	if n, err := b.n.Accept(lc); n != 0 || err != nil {
		t.Errorf("a stranger was accepted: %#x, %v", uint64(n), err)
	}
	legitimate(t, b, handle, lc)
}

// prove goes through the handshake as one who has the token, then says something else.
func prove(t *testing.T, h wire.Handle, at string, say []byte) {
	f1 := wire.Frame1{Version: wire.Version, Role: wire.RoleComm, ListenID: h.ListenID}
	rand.Read(f1.Nonce[:])
	f1.Sign(&h.Token)
	x := dial(t, at)
	x.Write(append(f1.Append(nil), hostile.New(h, patience).Hello()...))
	answer := make([]byte, wire.Frame2Size)
	_, err := io.ReadFull(x, answer)
	must(t, err, "answer to the proof")
	f2, err := wire.ParseFrame2(answer)
	must(t, err, "answer to the proof")
	if !f2.Verify(&h.Token, &f1) {
		t.Error("the listener does not prove that it has the token")
	}
	var f3 wire.Frame3
	f3.Sign(&h.Token, &f1, &f2)
	x.Write(append(f3.Append(nil), say...))
	closed(t, x)
}

// closed requires that the listener closes x.
func closed(t *testing.T, x net.Conn) {
	t.Helper()
	if _, err := io.Copy(io.Discard, x); err != nil {
		if e, ok := err.(net.Error); ok && e.Timeout() {
			t.Error("still open")
		}
	}
}

// legitimate connects with the handle that strangers were after, and moves data.
func legitimate(t *testing.T, b *peer, handle []byte, lc host.Ptr) time.Duration {
	t.Helper()
	a := start(t, "legitimate", newest)
	at := a.put(handle)
	begin := time.Now()
	w := a.h.Go(a.n.Setup, "net.connect", host.Args{"ctx", a.n.Ctx, "dev", 0, "handle", at, "poll", 1, "limit", patience})
	recv, err := b.n.AcceptPoll(lc, patience)
	must(t, err, "accept of the legitimate connection")
	took := time.Since(begin)
	r, err := w.Wait()
	must(t, err, "legitimate connect")
	c := &conn{tx: a, rx: b, send: r.Ptr("comm"), recv: recv, size: 1 << 20}
	c.a, c.amh = a.mem(c.send, c.size)
	c.b, c.bmh = b.mem(c.recv, c.size)
	c.move(traffic{size: 100_000, count: 5, window: 4})
	return took
}

// TestIdleClients holds 1,000 connections open that say nothing, or only half of what
// they should, and has a legitimate one come through meanwhile.
func TestIdleClients(t *testing.T) {
	for _, say := range []int{0, 1, 40} {
		t.Run(fmt.Sprintf("%d_bytes", say), func(t *testing.T) {
			b := start(t, "listening", newest)
			handle, lc := b.listen()
			h, at := addr(t, handle)
			before := fds(t, b)
			const idle = 1000
			for range idle {
				c := dial(t, at)
				c.Write(hello1(h, nil)[:say])
			}
			during := fds(t, b)
			t.Logf("accepted in %v beside %d idle clients (%d descriptors for them)", legitimate(t, b, handle, lc), idle, during-before)
			if during-before > 300 {
				t.Errorf("%d descriptors are held for strangers, want at most 256 and a few", during-before)
			}
		})
	}
}
