package transport

import (
	"runtime"
	"strings"
	"testing"

	"weft/transport/session"
	"weft/transport/wire"
)

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
