package wire

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var equateAddrs = cmpopts.EquateComparable(netip.Addr{})

var sample = Header{Lane: 3, Hop: 1, Epoch: 7, Session: 0x1122334455667788, Message: 9, Comm: 10}

func v4s(n int) (out []Endpoint) {
	for i := range n {
		out = append(out, Endpoint{Addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), Prefix: 24, Port: 4791})
	}
	return out
}

func v6s(n int) (out []Endpoint) {
	for i := range n {
		out = append(out, Endpoint{Addr: netip.AddrFrom16([16]byte{0xfd, 15: byte(i + 1)}), Prefix: 64, Port: 4791})
	}
	return out
}

func TestHandleSizes(t *testing.T) {
	mixed := append(v4s(1), append(v6s(1), v4s(1)...)...)
	for _, tc := range []struct {
		name  string
		addrs []Endpoint
		size  int
		want  int
	}{
		{"three IPv4 in 64", v4s(5), HandleMin, 3},
		{"one IPv6 in 64", v6s(3), HandleMin, 1},
		{"eleven IPv4 in 128", v4s(20), HandleMax, 11},
		{"four IPv6 in 128", v6s(9), HandleMax, 4},
		{"mixed in 64", mixed, HandleMin, 1},
		{"mixed in 128", mixed, HandleMax, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := Fits(tc.addrs, tc.size)
			if n != tc.want {
				t.Fatalf("%d addresses fit, want %d", n, tc.want)
			}
			h := Handle{Origin: 7, Token: Token{1, 2}, ListenID: 77, Addrs: tc.addrs[:n]}.Named("node7.cluster.example", tc.size)
			b := h.Append(nil)
			if len(b) > tc.size {
				t.Fatalf("handle of %d bytes in %d", len(b), tc.size)
			}
			padded := append(b, make([]byte, tc.size-len(b))...)
			PutState(padded, 0xabc)
			got, err := ParseHandle(padded)
			if err != nil {
				t.Fatal(err)
			}
			h.State = 0xabc
			if d := cmp.Diff(h, got, equateAddrs); d != "" {
				t.Fatal(d)
			}
		})
	}
}

func TestHandleRefused(t *testing.T) {
	good := Handle{Addrs: v4s(2)}.Append(nil)
	with := func(at int, v byte) []byte {
		b := bytes.Clone(good)
		b[at] = v
		return b
	}
	for name, b := range map[string][]byte{
		"empty":             nil,
		"other plugin's":    bytes.Repeat([]byte{0x5a}, 128),
		"length past end":   with(5, 200),
		"length short":      with(5, 10),
		"no address":        with(6, 0),
		"too many":          with(6, 40),
		"count past length": with(6, 3),
		"address kind":      with(40, 5),
		"prefix":            with(41, 33),
		"unspecified":       append(good[:44:44], make([]byte, 12)...),
	} {
		if h, err := ParseHandle(b); !errors.Is(err, ErrMalformed) || !cmp.Equal(h, Handle{}, equateAddrs) {
			t.Errorf("%s: %v, %v", name, h, err)
		}
	}
	if _, err := ParseHandle(with(4, Version+1)); !errors.Is(err, ErrVersion) {
		t.Errorf("later version: %v", err)
	}
	for n := range good {
		if _, err := ParseHandle(good[:n]); err == nil {
			t.Errorf("cut at %d: no error", n)
		}
	}
}

func TestProofs(t *testing.T) {
	token, other := Token{1}, Token{2}
	f1 := Frame1{Version: Version, Role: RoleComm, ListenID: 5, Nonce: Nonce{3}}
	f1.Sign(&token)
	if !f1.Verify(&token) || f1.Verify(&other) {
		t.Fatal("frame 1")
	}
	f2 := Frame2{Nonce: Nonce{4}}
	f2.Sign(&token, &f1)
	if !f2.Verify(&token, &f1) || f2.Verify(&other, &f1) {
		t.Fatal("frame 2")
	}
	var f3 Frame3
	f3.Sign(&token, &f1, &f2)
	if !f3.Verify(&token, &f1, &f2) {
		t.Fatal("frame 3")
	}
	if f3.Proof == f2.Proof {
		t.Fatal("frame 2's proof would pass as frame 3's")
	}
	replay := f2
	replay.Nonce[0]++
	if f3.Verify(&token, &f1, &replay) || replay.Verify(&token, &f1) {
		t.Fatal("a proof passes for another nonce")
	}
	changed := f1
	changed.Role = RoleControl
	if changed.Verify(&token) {
		t.Fatal("role is not covered")
	}
}

func TestInventoryContinues(t *testing.T) {
	var inv Inventory
	for i := range 90 {
		d := Device{Index: uint16(i), Kind: 1, MTU: 9000, SpeedMbps: 100000, Name: strings.Repeat("e", 12), Rail: -1, Plane: -1}
		for _, a := range v6s(6) {
			a.Port = 0
			d.Addrs = append(d.Addrs, a)
		}
		inv.Devices = append(inv.Devices, d)
	}
	r := NewReader(iotest.OneByteReader(bytes.NewReader(inv.Append(nil))))
	var got []Device
	for {
		frame, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		m, err := ParseInventory(frame)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, m.Devices...)
		if m.Flags&FlagMore == 0 {
			break
		}
	}
	if d := cmp.Diff(inv.Devices, got, equateAddrs); d != "" {
		t.Fatal(d)
	}
	if _, err := r.Next(); err != io.EOF {
		t.Fatal(err)
	}
}

// A comm has its streams first, and then each port of the device once.
func TestLanesAreJudged(t *testing.T) {
	stream, port, other := Lane{Kind: LaneTCP, Streams: 2}, Lane{Kind: LaneVerbs, Streams: 1, Device: 3}, Lane{Kind: LaneVerbs, Streams: 1, Device: 1}
	many := []Lane{stream}
	for i := range MaxSlots + 1 {
		many = append(many, Lane{Kind: LaneVerbs, Streams: 1, Device: uint16(i)})
	}
	for _, all := range [][]Lane{{port}, {port, stream}, {stream, stream}, {stream, port, other, port}, many} {
		m := Lanes{Lanes: all}
		if _, err := ParseLanes(m.Append(nil)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%v: %v", all, err)
		}
	}
	m := Lanes{Lanes: []Lane{stream, port, other}}
	if got, err := ParseLanes(m.Append(nil)); err != nil || got.Streams() != 2 || !slices.Equal(got.Ports(), []uint16{3, 1}) {
		t.Errorf("%v: %v", got, err)
	}
}

// TestLittleIsAllocated decodes the frames that hold the most.
func TestLittleIsAllocated(t *testing.T) {
	small := Inventory{Devices: make([]Device, maxPerFrame)}
	wide := Inventory{Devices: []Device{{Addrs: v4s(maxDevAddrs)}, {Addrs: v4s(maxDevAddrs)}, {Addrs: v4s(maxDevAddrs)}, {GIDs: make([]PortGID, maxDevGIDs)}}}
	lanes := Lanes{Lanes: []Lane{{Kind: LaneTCP, Streams: 1}}}
	for i := range MaxSlots {
		lanes.Lanes = append(lanes.Lanes, Lane{Kind: LaneVerbs, Streams: 1, Device: uint16(i)})
	}
	for name, decode := range map[string]func() error{
		"small devices": func() error { _, err := ParseInventory(small.Append(nil)); return err },
		"wide devices":  func() error { _, err := ParseInventory(wide.Append(nil)); return err },
		"lanes":         func() error { _, err := ParseLanes(lanes.Append(nil)); return err },
		"handle":        func() error { _, err := ParseHandle(Handle{Addrs: v4s(11)}.Append(nil)); return err },
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 100 {
			if err := decode(); err != nil {
				t.Fatal(name, err)
			}
		}
		runtime.ReadMemStats(&after)
		if each := (after.TotalAlloc - before.TotalAlloc) / 100; each > 8*MaxFrame { // the encoder's part included
			t.Errorf("%s: %d bytes", name, each)
		}
	}
}

func TestReader(t *testing.T) {
	a := (&Attach{Header: sample, Nonce: Nonce{1}}).Append(nil)
	g := (&Go{Header: sample}).Append(nil)
	r := NewReader(bytes.NewReader(append(append([]byte("12345678"), a...), g...)))
	if b, err := r.Bytes(8); err != nil || string(b) != "12345678" {
		t.Fatalf("%q %v", b, err)
	}
	if f, err := r.Next(); err != nil || KindOf(f) != KindAttach || r.Buffered() != len(g) {
		t.Fatalf("%v %v %d", f, err, r.Buffered())
	}
	if f, err := r.Next(); err != nil || KindOf(f) != KindGo || r.Buffered() != 0 {
		t.Fatalf("%v %v", f, err)
	}
	for n := 1; n < len(a); n++ {
		r.Reset(bytes.NewReader(a[:n]))
		if f, err := r.Next(); err != io.ErrUnexpectedEOF {
			t.Fatalf("cut at %d: %v %v", n, f, err)
		}
	}
	long := bytes.Clone(a)
	le.PutUint16(long, MaxFrame+1)
	r.Reset(bytes.NewReader(long))
	if _, err := r.Next(); !errors.Is(err, ErrMalformed) {
		t.Fatal(err)
	}
}

func TestTextCannotForgeLogLines(t *testing.T) {
	b := (&Reject{Reason: "bad\nNET/weft : all is well\x1b[2J"}).Append(nil)
	m, err := ParseReject(b)
	if err != nil || strings.ContainsAny(m.Reason, "\n\x1b") {
		t.Fatalf("%q %v", m.Reason, err)
	}
	b[len(b)-1] = '\n'
	if m, err := ParseReject(b); err == nil {
		t.Fatalf("accepted %q", m.Reason)
	}
}

// An attach holds for its token, handshake, session and comm alone.
func TestAttachProof(t *testing.T) {
	token, f1, f2 := Token{1}, Frame1{ListenID: 2, Nonce: Nonce{3}}, Frame2{Nonce: Nonce{4}}
	good := Attach{Header: Header{Session: 5, Comm: 6}}
	good.Sign(&token, &f1, &f2)
	for name, change := range map[string]func(m *Attach, token *Token, f1 *Frame1, f2 *Frame2){
		"":               func(*Attach, *Token, *Frame1, *Frame2) {},
		"session":        func(m *Attach, _ *Token, _ *Frame1, _ *Frame2) { m.Session++ },
		"comm":           func(m *Attach, _ *Token, _ *Frame1, _ *Frame2) { m.Comm++ },
		"nonce":          func(m *Attach, _ *Token, _ *Frame1, _ *Frame2) { m.Nonce[0]++ },
		"proof":          func(m *Attach, _ *Token, _ *Frame1, _ *Frame2) { m.Proof[0]++ },
		"token":          func(_ *Attach, token *Token, _ *Frame1, _ *Frame2) { token[0]++ },
		"listen":         func(_ *Attach, _ *Token, f1 *Frame1, _ *Frame2) { f1.ListenID++ },
		"client nonce":   func(_ *Attach, _ *Token, f1 *Frame1, _ *Frame2) { f1.Nonce[0]++ },
		"another comm's": func(m *Attach, _ *Token, _ *Frame1, f2 *Frame2) { m.Nonce[0]++; f2.Nonce[0]++ },
	} {
		m, token, f1, f2 := good, token, f1, f2
		change(&m, &token, &f1, &f2)
		if ok := m.Verify(&token, &f1, &f2); ok != (name == "") {
			t.Errorf("%q changed: verified %v", name, ok)
		}
	}
}
