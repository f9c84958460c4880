package frames

import (
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weft/internal/golden"
	"weft/transport/wire"
)

var (
	head = wire.Header{Flags: wire.FlagVerbs | 1<<9, Session: 0x1122, Message: 7, Comm: 0xabcd}
	gid  = wire.PortGID{Addr: netip.MustParseAddr("::ffff:10.1.0.7").As16(), Type: 2, Bits: 24}
	end  = wire.QPEnd{Device: 1, Peer: 2, QPN: 17, PSN: 99, MTU: 5, GID: gid, Scratch: wire.Scratch{Addr: 4096, Key: 77}}
	ends = []wire.Endpoint{{Addr: netip.MustParseAddr("10.1.0.7"), Prefix: 24, Port: 4000}, {Addr: netip.MustParseAddr("2001:db8::7"), Prefix: 64, Port: 4000}}
)

func aHandle() []byte {
	h := wire.Handle{Origin: 3, Token: wire.Token{9, 9, 9, 9}, ListenID: 0x1234, Addrs: ends}.Named("node7", wire.HandleMax)
	b := h.Append(nil)
	return append(b, make([]byte, wire.HandleMax-len(b))...)
}

// connecting is what the connecting side says, up to go and data behind it.
func connecting() []byte {
	f1 := wire.Frame1{Version: 1, Role: wire.RoleComm, ListenID: 0x1234, Nonce: wire.Nonce{1}}
	b := f1.Append(nil)
	b = (&wire.Pad{}).Append(b, 100)
	b = (&wire.Hello{Header: head, Speaks: wire.Version, Device: 1, PID: 77, Process: wire.ProcessID{5}, Host: "node8", Build: "v1", Name: "eth0"}).Append(b)
	b = (&wire.Frame3{}).Append(b)
	b = (&wire.Offer{SL: 3, TC: 104, Further: 1, Shared: 1 << 40, Keys: []uint32{7}, Lanes: []wire.QPEnd{end}}).Append(b)
	b = (&wire.Go{Header: head, NoRDMA: "no\nroute"}).Append(b)
	return append(b, "data"...)
}

// further is what it says on a further stream, which has data behind frame 3.
func further() []byte {
	f1 := wire.Frame1{Version: 1, Role: wire.RoleStream, ListenID: 0x1234, Nonce: wire.Nonce{3}}
	b := (&wire.Stream{Header: head, Parent: wire.Nonce{2}, Index: 1}).Append(f1.Append(nil))
	return append((&wire.Frame3{}).Append(b), "data"...)
}

// listening is what the other side says.
func listening() []byte {
	b := (&wire.Frame2{Nonce: wire.Nonce{2}}).Append(nil)
	b = (&wire.Hello{Header: head, Speaks: wire.Version + 1, Host: "node7", Build: "v2"}).Append(b)
	b = (&wire.Inventory{Header: head, Devices: []wire.Device{{Index: 1, Port: 1, Kind: wire.LaneVerbs, Link: 1, MTU: 4096, SpeedMbps: 400000, GUID: 0xa088c20300f00001, Rail: -1, Plane: -1, Name: "mlx5_0", Addrs: []wire.Endpoint{}, GIDs: []wire.PortGID{gid}}}}).Append(b)
	b = (&wire.Lanes{Header: head, Stash: 1 << 17, Lanes: []wire.Lane{{Kind: wire.LaneTCP, Streams: 4, MTU: 9000}, {Kind: wire.LaneVerbs, Streams: 1, Device: 1, MTU: 4096}}}).Append(b)
	b = (&wire.Session{Header: head, Key: [wire.KeySize]byte{8, 8, 8}}).Append(b)
	b = (&wire.ProbeState{Header: head, Number: 4, State: wire.ProbeGone, Reason: "the card is gone"}).Append(b)
	b = (&wire.WaitReply{Header: head, Groups: 12, Why: wire.WaitSend, Millis: 3000, For: "node8/77", Root: wire.RootDown, RootAge: 5, RootWho: "node8/77"}).Append(b)
	return (&wire.Refused{Header: head, Seq: 3, Entry: 1, Size: 4096, Room: 1024}).Append(b)
}

func wrong() []byte {
	b := []byte("\x00\x01PREFIX")
	b = append(b, aHandle()[:wire.HandleMin]...)
	b[len("\x00\x01PREFIX")+4] = 9 // of another version
	return b
}

// badBody is a message whose body breaks a rule, and one that is cut.
func badBody() []byte {
	b := (&wire.Refused{Header: head, Entry: 1}).Append(nil)
	b[wire.HeaderSize+8] = 200
	return append(b, (&wire.Bye{Header: head}).Append(nil)[:wire.HeaderSize]...)[:len(b)+wire.HeaderSize]
}

// What bytes of each kind are told as.
func TestText(t *testing.T) {
	for name, b := range map[string][]byte{
		"handle": aHandle(), "connecting": connecting(), "further": further(), "listening": listening(), "other-version": wrong(), "bad-body": badBody(),
		"nothing": nil, "stranger": []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), "cut": connecting()[:40], "cut-message": connecting()[:wire.Frame1Size+150],
	} {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			r := Decode(b)
			if err := r.Text(&got); err != nil {
				t.Fatal(err)
			}
			golden.File(t, filepath.Join("testdata", name+".txt"), got.String())
			if good := slices.Contains([]string{"handle", "connecting", "further", "listening", "nothing"}, name); r.Wrong() == good {
				t.Errorf("wrong %v, good %v", r.Wrong(), good)
			}
			for _, secret := range []string{"09090909", "080808"} {
				if strings.Contains(got.String(), secret) {
					t.Errorf("a secret is shown")
				}
			}
		})
	}
}

// Every kind that wire names can be read.
func TestKinds(t *testing.T) {
	for k := range 256 {
		kind := wire.Kind(k)
		if named := !strings.HasPrefix(kind.String(), "kind "); named != (parsers[kind] != nil) {
			t.Errorf("%v: named %v, can be read %v", kind, named, parsers[kind] != nil)
		}
	}
}

func TestHex(t *testing.T) {
	for text, want := range map[string]string{
		"77656674": "weft", "77:65:66:74": "weft", "0x77, 0x65 0x66\n0x74": "weft", `\x77\x65\x66\x74`: "weft", "77656674 7": "weft\x07", "{0x7, 0x77}": "\x07w",
		"": "", "zz": "", "776": "", "0x": "",
	} {
		b, err := Hex(text)
		if (err == nil) != (want != "") || string(b) != want {
			t.Errorf("%q: %q, %v, want %q", text, b, err, want)
		}
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"raw": "weft\x01", "hex": "77 65 66 74 01\n", "large": strings.Repeat("x", mostInput+1)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ arg, stdin, want, err string }{
		{filepath.Join(dir, "raw"), "", "weft\x01", ""}, {filepath.Join(dir, "hex"), "", "weft\x01", ""}, {"7765667401", "", "weft\x01", ""},
		{"-", "77656674 01", "weft\x01", ""}, {filepath.Join(dir, "large"), "", "", "more than"}, {"no-such-file!", "", "", "no file and no hex"}, {dir, "", "", "is a directory"},
	} {
		b, err := Read(c.arg, strings.NewReader(c.stdin))
		if string(b) != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %q, %v", c.arg, b, err)
		}
	}
}

// Whatever the bytes are, their parts are all of them, each with a name, and none is both read and not.
func FuzzDecode(f *testing.F) {
	for _, b := range [][]byte{aHandle(), connecting(), listening(), wrong(), badBody(), nil} {
		f.Add(b)
		f.Add(b[:len(b)/2])
		f.Add(append(slices.Clone(b), b...))
	}
	f.Fuzz(covers)
}

// covers checks what is told of any bytes.
func covers(t *testing.T, b []byte) {
	t.Helper()
	r, at := Decode(b), 0
	for _, p := range r.Parts {
		if p.Offset != at || p.Bytes <= 0 || p.What == "" || p.Error != "" && p.Fields != nil {
			t.Fatalf("%x: %+v at %d", b, p, at)
		}
		at += p.Bytes
	}
	if at != len(b) || r.Bytes != at {
		t.Fatalf("%x: parts of %d bytes", b, at)
	}
	var text strings.Builder
	if err := r.Text(&text); err != nil || strings.ContainsFunc(text.String(), func(c rune) bool { return c < ' ' && c != '\n' }) {
		t.Fatalf("%x: %v: %q", b, err, text.String())
	}
}

// Bytes that were damaged on the way panic nobody.
func TestDamaged(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	seeds := [][]byte{aHandle(), connecting(), listening(), wrong(), badBody()}
	for range 20000 {
		b := slices.Clone(seeds[r.IntN(len(seeds))])
		for range 1 + r.IntN(4) {
			switch at := r.IntN(len(b)); r.IntN(3) {
			case 0:
				b[at] = byte(r.Uint32())
			case 1:
				b = b[:at+1]
			default:
				b = append(b[:at:at], b[r.IntN(len(b)):]...)
			}
			if len(b) == 0 {
				b = []byte{0}
			}
		}
		covers(t, b)
	}
}

func FuzzHex(f *testing.F) {
	for _, s := range []string{"77656674", "0x7", `\x77`, "{,}", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if b, err := Hex(text); (err == nil) != (len(b) > 0) {
			t.Fatalf("%q: %x, %v", text, b, err)
		}
	})
}
