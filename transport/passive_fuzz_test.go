package transport

import (
	"bytes"
	"io"
	"net"
	"slices"
	"testing"

	"weft/transport/wire"
)

// grantIn is whom a control connection was granted, and by which id, by what both sides said behind frame 3; 0: none was.
func grantIn(asked, replied []byte) (process wire.ProcessID, id uint64) {
	frame, _ := wire.NewReader(bytes.NewReader(asked)).NextPadded()
	hello, _ := wire.ParseHello(frame)
	for rd := wire.NewReader(bytes.NewReader(replied)); ; {
		frame, err := rd.NextPadded()
		if err != nil {
			return hello.Process, id
		}
		if grant, err := wire.ParseSession(frame); err == nil {
			id = grant.Session
		}
	}
}

// opening reports whether b has, behind its pads, a whole message, so that the listener waits for no more, and whether that is a
// hello with nothing behind it, which it answers.
func opening(b []byte) (whole, hello bool) {
	rd := wire.NewReader(bytes.NewReader(b))
	for read := 0; ; {
		frame, err := rd.Next()
		if err != nil {
			return false, false
		}
		if read += len(frame); wire.KindOf(frame) != wire.KindPad {
			_, err := wire.ParseHello(frame)
			return true, err == nil && read == len(b)
		}
	}
}

// FuzzAfterProof plays a peer that knows the token and sends anything behind frame 1, and behind frame 3 if it gets that far: the
// listener neither panics nor keeps anything of it.
func FuzzAfterProof(f *testing.F) {
	hello := wire.Hello{Speaks: wire.Version, Process: wire.ProcessID{1}, Host: "elsewhere"}
	h := hello.Append(nil)
	last := wire.Go{Header: wire.Header{Session: 1, Comm: 2}}
	stream := wire.Stream{Parent: wire.Nonce{1}, Index: 1}
	inv := wire.Inventory{Devices: []wire.Device{{Name: "eth0"}}}
	attach := wire.Attach{Header: wire.Header{Comm: 7}}
	bye := wire.Bye{}
	f.Add(uint16(wire.RoleComm), h, []byte{})
	f.Add(uint16(wire.RoleComm), h, last.Append(nil))
	f.Add(uint16(wire.RoleComm), last.Append(slices.Clone(h)), []byte{})
	f.Add(uint16(wire.RoleStream), stream.Append(nil), []byte{})
	f.Add(uint16(wire.RoleControl), []byte{}, h)
	f.Add(uint16(wire.RoleControl), []byte{}, inv.Append(slices.Clone(h)))
	f.Add(uint16(wire.RoleControl), []byte{}, bye.Append(attach.Append(inv.Append(slices.Clone(h)))))
	p := start(f, map[string]string{"WEFT_TIMEOUT": "1"})
	_, handle := p.listen(f, wire.HandleMax)
	ph, err := wire.ParseHandle(handle)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, role uint16, first, rest []byte) {
		f1 := frame1(ph, wire.RoleComm+wire.Role((role-uint16(wire.RoleComm))%3))
		c := client(t, ph)
		c.Write(append(f1.Append(nil), first...))
		whole, hello := opening(first)
		b := make([]byte, wire.Frame2Size)
		if whole || f1.Role == wire.RoleControl {
			if _, err := io.ReadFull(c, b); err != nil && (f1.Role == wire.RoleControl || f1.Role == wire.RoleComm && hello) {
				t.Fatal(err)
			}
			f2, _ := wire.ParseFrame2(b)
			var f3 wire.Frame3
			f3.Sign(&ph.Token, &f1, &f2)
			c.Write(append(f3.Append(nil), rest...))
		}
		c.(*net.TCPConn).CloseWrite()
		said, _ := io.ReadAll(c)
		process, id := grantIn(rest, said)
		eventually(t, "nothing is left of the peer", func() bool {
			p.inbound.Lock()
			defer p.inbound.Unlock()
			return len(p.inbound.byNonce) == 0 && p.sessions.From(process, id) == nil && accepted(t, handle) == 0
		})
	})
}
