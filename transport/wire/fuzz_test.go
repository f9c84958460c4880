package wire

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// law is what every decoder keeps: an error comes with the zero value, and what
// it accepts is exactly what its encoder writes for the value it answered.
func law[T any](f *testing.F, parse func([]byte) (T, error), app func(T) []byte, seeds ...T) {
	for _, s := range seeds {
		b := app(s)
		f.Add(b)
		f.Add(b[:len(b)/2])
		f.Add(append(b, 0))
	}
	f.Add([]byte(nil))
	f.Add([]byte("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := parse(b)
		if err != nil {
			var zero T
			if !cmp.Equal(v, zero, equateAddrs) {
				t.Fatalf("error %v with value %+v", err, v)
			}
			return
		}
		again := app(v)
		if !bytes.Equal(again, b) {
			t.Fatalf("parsed %x\nwrote  %x\nvalue %+v", b, again, v)
		}
	})
}

var end = QPEnd{Device: 1, Peer: 2, QPN: 17, PSN: 1<<24 - 1, LID: 4, MTU: 5, GID: PortGID{Addr: GID{0xfe}, Type: 2, Bits: 64}, ECE: ECE{Vendor: 0x15b3, Options: 12}}

func FuzzHandle(f *testing.F) {
	parse := func(b []byte) (Handle, error) {
		h, err := ParseHandle(b)
		if err == nil && len(h.Append(nil)) < len(b) { // padding is not part of the value
			h, err = ParseHandle(b[:len(h.Append(nil))])
			if err == nil {
				return Handle{}, ErrMalformed
			}
		}
		return h, err
	}
	law(f, parse, func(h Handle) []byte { return h.Append(nil) },
		Handle{Token: Token{1}, ListenID: 4, State: 9, Addrs: v4s(11)}, Handle{Addrs: v6s(4)}, Handle{Origin: 3, Addrs: v6s(1), Host: "n"})
}

func FuzzFrame1(f *testing.F) {
	law(f, ParseFrame1, func(m Frame1) []byte { return m.Append(nil) }, Frame1{Version: 1, Role: RoleComm, Nonce: Nonce{7}})
}

func FuzzFrame2(f *testing.F) {
	law(f, ParseFrame2, func(m Frame2) []byte { return m.Append(nil) }, Frame2{Nonce: Nonce{7}})
}

func FuzzFrame3(f *testing.F) {
	law(f, ParseFrame3, func(m Frame3) []byte { return m.Append(nil) }, Frame3{Proof: Proof{7}})
}

func FuzzHello(f *testing.F) {
	parse := func(b []byte) (Hello, error) {
		m, err := ParseHello(b)
		if err == nil && m.Speaks != Version { // later versions may append fields
			return Hello{}, ErrVersion
		}
		return m, err
	}
	law(f, parse, func(m Hello) []byte { return m.Append(nil) },
		Hello{Header: sample, Speaks: Version, Device: 2, PID: 33, Process: ProcessID{5}, Host: "node1", Build: "v0", Name: "eth0"})
}

func FuzzInventory(f *testing.F) {
	d := Device{Name: "eth0", Addrs: append(v4s(1), v6s(1)...), GIDs: []PortGID{{Addr: GID{1}, Type: 2, Bits: 24}}, Rail: -1}
	law(f, ParseInventory, func(m Inventory) []byte { return m.Append(nil) },
		Inventory{Header: sample}, Inventory{Header: sample, Devices: []Device{d, d}})
}

func FuzzLanes(f *testing.F) {
	law(f, ParseLanes, func(m Lanes) []byte { return m.Append(nil) },
		Lanes{Header: sample, Stash: 128 << 10, Lanes: []Lane{{Kind: LaneTCP, Streams: 4, MTU: 1500}}})
}

func FuzzStream(f *testing.F) {
	law(f, ParseStream, func(m Stream) []byte { return m.Append(nil) }, Stream{Header: sample, Parent: Nonce{1}, Index: 1})
}

func FuzzTaken(f *testing.F) {
	law(f, ParseTaken, func(m Taken) []byte { return m.Append(nil) }, Taken{Header: sample})
}

func FuzzGo(f *testing.F) {
	law(f, ParseGo, func(m Go) []byte { return m.Append(nil) }, Go{Header: sample})
}

func FuzzReject(f *testing.F) {
	law(f, ParseReject, func(m Reject) []byte { return m.Append(nil) }, Reject{Header: sample, Reason: "no room"})
}

func FuzzSession(f *testing.F) {
	law(f, ParseSession, func(m Session) []byte { return m.Append(nil) }, Session{Header: sample, Key: [KeySize]byte{1}})
}

func FuzzOffer(f *testing.F) {
	law(f, ParseOffer, func(m Offer) []byte { return m.Append(nil) },
		Offer{Header: Header{Flags: FlagAnyOrder}, SL: 3, TC: 104, Further: 14, Shared: 1 << 40, Keys: []uint32{7}, Lanes: []QPEnd{end, end}},
		Offer{Further: 2, Shared: 1 << 40, Keys: []uint32{7}, Lanes: []QPEnd{end}, Later: []PortPair{{Device: 3, Peer: 1, GID: end.GID}, {Peer: 4}}},
		Offer{Header: Header{Flags: FlagReuse, Session: 7, Comm: 1 << 48}, Shared: 1 << 40, Keys: []uint32{7}, Lanes: []QPEnd{end}})
}

func FuzzAnswer(f *testing.F) {
	law(f, ParseAnswer, func(m Answer) []byte { return m.Append(nil) },
		Answer{Header: sample, Shared: 1 << 40, Keys: []uint32{7, 8}, Lanes: []QPEnd{end}, Later: []PortPair{{Device: 3, Peer: 1, GID: end.GID}}}, Answer{Header: sample, Reason: "no room", Pair: 3})
}

func FuzzFurther(f *testing.F) {
	law(f, ParseFurther, func(m Further) []byte { return m.Append(nil) }, Further{Header: sample, Keys: []uint32{7, 8}, Lanes: []QPEnd{end, end}})
}

func FuzzFurtherAnswer(f *testing.F) {
	law(f, ParseFurtherAnswer, func(m FurtherAnswer) []byte { return m.Append(nil) },
		FurtherAnswer{Header: sample, Keys: []uint32{7}, Lanes: []QPEnd{end}}, FurtherAnswer{Header: sample, Reason: "no room"},
		FurtherAnswer{Header: sample, Reason: "one is down", Keys: []uint32{7, 9}, Lanes: []QPEnd{end}})
}

func FuzzJoin(f *testing.F) {
	law(f, ParseJoin, func(m Join) []byte { return m.Append(nil) }, Join{Header: sample}, Join{Header: sample, Pairs: 6})
}

func FuzzJoined(f *testing.F) {
	law(f, ParseJoined, func(m Joined) []byte { return m.Append(nil) },
		Joined{Header: sample, Pairs: 6, From: 1 << 33}, Joined{Header: sample, Reason: "no room"}, Joined{Header: sample, Reason: "one is down", Pairs: 2, From: 1})
}

func FuzzAttach(f *testing.F) {
	law(f, ParseAttach, func(m Attach) []byte { return m.Append(nil) }, Attach{Header: sample, Nonce: Nonce{1}})
}

func FuzzClosed(f *testing.F) {
	law(f, ParseClosed, func(m Closed) []byte { return m.Append(nil) }, Closed{Header: sample})
}

func FuzzRefused(f *testing.F) {
	law(f, ParseRefused, func(m Refused) []byte { return m.Append(nil) }, Refused{Header: sample, Seq: 1, Entry: 2, Size: 3, Room: 4})
}

func FuzzFailed(f *testing.F) {
	law(f, ParseFailed, func(m Failed) []byte { return m.Append(nil) }, Failed{Header: sample, Reason: "link"}, Failed{Header: sample, Aborted: true})
}

func FuzzBye(f *testing.F) {
	law(f, ParseBye, func(m Bye) []byte { return m.Append(nil) }, Bye{Header: sample})
}

// FuzzReader feeds a stream cut anywhere; the reader never answers a frame that
// FrameLength would not have accepted.
func FuzzReader(f *testing.F) {
	f.Add((&Attach{Header: sample}).Append(nil), 3)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		cut = min(max(cut, 0), len(b))
		r := NewReader(&twoPart{b[:cut], b[cut:]})
		var got []byte
		for {
			frame, err := r.Next()
			if err != nil {
				break
			}
			if n, err := FrameLength(frame); err != nil || n != len(frame) {
				t.Fatalf("frame of %d bytes says %d, %v", len(frame), n, err)
			}
			got = append(got, frame...)
		}
		if !bytes.HasPrefix(b, got) {
			t.Fatalf("read %x from %x", got, b)
		}
	})
}

func FuzzProbeOffer(f *testing.F) {
	law(f, ParseProbeOffer, func(m ProbeOffer) []byte { return m.Append(nil) }, ProbeOffer{Header: sample, Number: 7, SL: 15, TC: 104, End: end})
}

func FuzzProbeAnswer(f *testing.F) {
	law(f, ParseProbeAnswer, func(m ProbeAnswer) []byte { return m.Append(nil) }, ProbeAnswer{Header: sample, Number: 7, End: end})
}

func FuzzProbeState(f *testing.F) {
	law(f, ParseProbeState, func(m ProbeState) []byte { return m.Append(nil) },
		ProbeState{Header: sample, Number: 7, State: ProbeWorks}, ProbeState{Header: sample, Number: 8, State: ProbeSilent, Reason: "no answer"})
}

func FuzzWaitAsk(f *testing.F) {
	law(f, ParseWaitAsk, func(m WaitAsk) []byte { return m.Append(nil) }, WaitAsk{Header: sample})
}

func FuzzWaitReply(f *testing.F) {
	law(f, ParseWaitReply, func(m WaitReply) []byte { return m.Append(nil) },
		WaitReply{Header: sample}, WaitReply{Header: sample, Groups: 3, Asks: true, Monitors: true},
		WaitReply{Header: sample, Groups: 1 << 40, Lacks: true, Owes: true, Moves: true, Monitors: true, Why: WaitPath, Millis: 5100, For: "node7:17314",
			Root: RootSilent, RootAge: 400, RootWho: "node6:17312"})
}
