package transport

import (
	"strings"
	"testing"

	"weft/internal/hostile"
	"weft/transport/wire"
)

// target is a listening process whose peer is hostile: one comm that its host has accepted.
type target struct {
	*process
	t    *testing.T
	l    *Listener
	peer *hostile.Peer
	s    *hostile.Control
	c    *hostile.Conn
	recv *Comm
}

// attacked has a hostile peer connect to a listen of p.
func attacked(t *testing.T, p *process, l *Listener, handle []byte) *target {
	t.Helper()
	peer := peerOf(t, handle)
	x := &target{process: p, t: t, l: l, peer: peer, s: granted(t, peer)}
	var err error
	if x.c, err = peer.Comm(x.s, 1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.c.Close() })
	if x.recv, err = accept(l); err != nil {
		t.Fatal(err)
	}
	return x
}

// over ends the peer and requires that nothing of it is left, that nothing broke
// here, and that others get on.
func (x *target) over(handle []byte) {
	x.s.Close()
	x.c.Close()
	if err := x.recv.Close(); err != nil {
		x.t.Error(err)
	}
	eventually(x.t, "nothing is left of the peer", func() bool {
		x.inbound.Lock()
		defer x.inbound.Unlock()
		// What is closed has no place among the connections that carry nothing: TestPlaceOfAConnection of rendezvous.
		return len(x.inbound.byNonce) == 0 && x.sessions.From(x.peer.Process, x.s.Session) == nil && accepted(x.t, handle) == 0
	})
	for _, l := range x.log.Lines() {
		if strings.Contains(l, "defect of weft") {
			x.t.Error(l)
		}
	}
	a := start(x.t, nil)
	s, err := a.connect(handle)
	if err != nil {
		x.t.Fatal(err)
	}
	r, err := accept(x.l)
	if err != nil {
		x.t.Fatal(err)
	}
	move(x.t, s, r, 100)
	s.Close()
	r.Close()
	a.Close()
}

// choices are a fuzzer's input as a series of small numbers.
type choices []byte

func (b *choices) next(n int) int {
	if len(*b) == 0 {
		return 0
	}
	v := int((*b)[0])
	*b = (*b)[1:]
	return v % n
}

// message is one of those that a control connection carries, as a peer may send it or not.
func (b *choices) message() hostile.Message {
	h := wire.Header{Session: uint64(b.next(3)), Comm: uint64(b.next(4)), Flags: uint16(b.next(32))}
	end := wire.QPEnd{Device: uint16(b.next(4)), Peer: uint16(b.next(4)), QPN: uint32(b.next(256)), MTU: uint8(1 + b.next(5))}
	reason := string((*b)[:min(len(*b), b.next(8))])
	switch b.next(12) {
	case 0:
		return &wire.Attach{Header: h, Nonce: wire.Nonce{byte(b.next(3))}}
	case 1:
		return &wire.Closed{Header: h}
	case 2:
		return &wire.Refused{Header: h, Seq: uint64(b.next(8)), Entry: uint32(b.next(9)), Size: uint64(b.next(256)), Room: uint64(b.next(256))}
	case 3:
		return &wire.Failed{Header: h, Reason: reason}
	case 4:
		return &wire.Bye{Header: h}
	case 5:
		return &wire.ProbeOffer{Header: h, Number: uint32(b.next(4)), End: end}
	case 6:
		return &wire.ProbeAnswer{Header: h, Number: uint32(b.next(4)), End: end}
	case 7:
		return &wire.ProbeState{Header: h, Number: uint32(b.next(4)), State: uint8(b.next(5)), Reason: reason}
	case 8:
		return &wire.Further{Header: h, Keys: []uint32{1}, Lanes: []wire.QPEnd{end}}
	case 9:
		return &wire.FurtherAnswer{Header: h, Reason: reason}
	case 10:
		return &wire.Join{Header: h, Pairs: uint32(b.next(256))}
	}
	return &wire.Joined{Header: h, Reason: reason, Pairs: uint32(b.next(4)), From: uint64(b.next(4))}
}

// FuzzControl has a peer say anything on the control connection of an open comm,
// whose host has receives under way.
func FuzzControl(f *testing.F) {
	for kind := range byte(12) {
		f.Add([]byte{0, 1, 0, 1, 1, 9, 2, 0, kind, 1, 1, 50, 60, 0, 1, 0, 1, 1, 9, 2, 0, 2, 1, 0, 9, 8}, []byte(nil))
	}
	f.Add([]byte(nil), []byte("no frame at all, but long enough to be taken for the header of one"))
	p := start(f, map[string]string{"WEFT_TIMEOUT": "1"})
	l, handle := p.listen(f, wire.HandleMax)
	f.Fuzz(func(t *testing.T, said, raw []byte) {
		x := attacked(t, p, l, handle)
		b := register(t, x.recv, buffer(t, 64), 64)
		in := recv(x.recv, b)
		in.step()
		for all := choices(said); len(all) > 0; {
			x.s.Tell(all.message())
		}
		x.s.Write(raw)
		x.s.CloseWrite()
		x.s.Drained(testLimit)
		x.c.Close()
		drive(t, "a receive from a hostile peer", in)
		if in.code == 0 {
			t.Error("a message arrived that nobody sent")
		}
		x.recv.DeregMr(b.Handle)
		x.over(handle)
	})
}

// FuzzStream has a peer send any frames on the stream of an open comm: what it
// writes lands where it was asked for or nowhere, and every receive ends.
func FuzzStream(f *testing.F) {
	whole := []byte{3, 0, 32, 0, 0, 1, 3, 0, 32, 0, 0, 2}
	f.Add(whole, uint8(0))
	f.Add(append([]byte{4, 255, 8, 0, 0, 1}, whole...), uint8(0))
	f.Add([]byte{3, 0, 16, 0, 0, 1, 3, 0, 16, 0, 8, 1, 2, 1, 9, 0, 0, 7}, uint8(5))
	p := start(f, map[string]string{"WEFT_TIMEOUT": "1"})
	l, handle := p.listen(f, wire.HandleMax)
	const room, around = 32, 64
	f.Fuzz(func(t *testing.T, sent []byte, cut uint8) {
		x := attacked(t, p, l, handle)
		mem := buffer(t, 2*(room+around))
		for i := range mem {
			mem[i] = 0xa5
		}
		all := register(t, x.recv, mem, len(mem))
		var ins []*transfer
		for i := range 2 {
			b := all
			b.Addr += uintptr(i*(room+around) + around/2)
			b.Size = room
			ins = append(ins, recv(x.recv, b))
			ins[i].step()
			ins[i].step()
		}
		var out []byte
		for b := choices(sent); len(b) >= 6; {
			fr := hostile.Frame{Kind: uint8(b.next(6)), Entry: uint8(b.next(256)), Len: uint32(b.next(80)), Lane: uint8(b.next(2)), Offset: uint64(b.next(64)), Seq: uint64(b.next(8))}
			fr.Size = max(fr.Len, room)
			out = append(fr.Append(out), make([]byte, fr.Len)...)
		}
		x.c.Write(out[:max(0, len(out)-int(cut))])
		for range 100 {
			ins[0].step()
			ins[1].step()
		}
		x.c.CloseWrite()
		x.s.Close()
		drive(t, "receives from a hostile peer", ins...)
		for i := range mem {
			at := i % (room + around)
			if (at < around/2 || at >= around/2+room) && mem[i] != 0xa5 {
				t.Fatalf("byte %d was written, which no receive asked for", i)
			}
		}
		x.recv.DeregMr(all.Handle)
		x.over(handle)
	})
}
