package faults

import (
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"syscall"
	"testing"
	"time"

	"weft/internal/host"
	"weft/internal/hostile"
	"weft/transport/wire"
)

// flood is what a process goes through that somebody is after, and what that may cost it.
type flood struct {
	name  string
	does  func(f *flooded)
	fds   int   // most descriptors held at once
	rss   int64 // most memory, MiB
	lines int   // most lines in the log
	left  int   // descriptors held once all has passed, the flood's connections being open still
}

// flooded is the process, and what the flood holds open.
type flooded struct {
	t      *testing.T
	b      *peer
	handle []byte
	lc     host.Ptr
	h      wire.Handle
	mu     sync.Mutex
	open   []io.Closer // protected by mu
}

func (f *flooded) keep(c io.Closer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = append(f.open, c)
}

// times has n of something done, many at once. What the process refuses, it may.
func (f *flooded) times(n int, do func(p *hostile.Peer) error) {
	var wg sync.WaitGroup
	next := make(chan struct{})
	for range 128 {
		wg.Go(func() {
			for range next {
				if err := do(hostile.New(f.h, patience/6)); errors.Is(err, syscall.EMFILE) {
					f.t.Errorf("this test may open too few files for its flood: %v", err)
				}
			}
		})
	}
	for range n {
		next <- struct{}{}
	}
	close(next)
	wg.Wait()
}

// half opens n connections as far as stage and leaves them there.
func (f *flooded) half(n int, stage func(p *hostile.Peer, c *hostile.Conn)) {
	f.times(n, func(p *hostile.Peer) error {
		c, err := p.Dial()
		if err == nil {
			f.keep(c)
			stage(p, c)
		}
		return err
	})
}

// sessions opens n control connections.
func (f *flooded) sessions(n int, claim func(p *hostile.Peer)) {
	f.times(n, func(p *hostile.Peer) error {
		claim(p)
		s, err := p.Control()
		if err == nil {
			f.keep(s)
		}
		return err
	})
}

// joined is a comm whose sending side is hostile; recv is the host's.
func (f *flooded) joined() (s *hostile.Control, c *hostile.Conn, recv host.Ptr) {
	f.t.Helper()
	p := hostile.New(f.h, patience)
	s, err := p.Control()
	must(f.t, err, "control connection")
	f.keep(s)
	c, err = p.Comm(s, 1)
	must(f.t, err, "comm")
	f.keep(c)
	recv, err = f.b.n.AcceptPoll(f.lc, patience)
	must(f.t, err, "accept")
	return s, c, recv
}

var floods = []flood{
	{"strangers without the token", func(f *flooded) {
		f.h.Token[0] ^= 1
		f.half(10000, func(p *hostile.Peer, c *hostile.Conn) { p.Ask(c, wire.RoleComm); c.Close() })
	}, 300, 64, 20, 4},
	{"connections that say a byte", func(f *flooded) {
		f.half(3000, func(_ *hostile.Peer, c *hostile.Conn) { c.Write([]byte("w")) })
	}, 300, 64, 20, 4},
	{"half-open handshakes of comms", func(f *flooded) {
		f.half(1500, func(p *hostile.Peer, c *hostile.Conn) { c.Write(p.Frame1(c, wire.RoleComm)) })
	}, 1300, 64, 60, 4},
	{"half-open handshakes of control connections", func(f *flooded) {
		f.half(3000, func(p *hostile.Peer, c *hostile.Conn) { p.Ask(c, wire.RoleControl) })
	}, 1300, 64, 60, 4},
	{"comms that are never complete", func(f *flooded) {
		f.times(3000, func(p *hostile.Peer) error {
			c, err := p.Begin()
			if err == nil {
				f.keep(c)
			}
			return err
		})
	}, 1300, 64, 60, 4},
	{"sessions of one process", func(f *flooded) {
		one := hostile.New(f.h, 0)
		f.sessions(400, func(p *hostile.Peer) { p.Process = one.Process })
	}, 300, 64, 60, 4},
	{"sessions of many processes", func(f *flooded) {
		f.sessions(2500, func(*hostile.Peer) {})
	}, 1300, 64, 60, 4},
	{"comms that nobody accepts", func(f *flooded) {
		one := hostile.New(f.h, patience)
		s, err := one.Control()
		must(f.t, err, "control connection")
		f.keep(s)
		var mu sync.Mutex
		id := uint64(0)
		f.times(2000, func(p *hostile.Peer) error {
			p.Process = one.Process
			mu.Lock() // one control connection has one writer
			defer mu.Unlock()
			id++
			c, err := p.Comm(s, id)
			if err == nil {
				f.keep(c)
			}
			return err
		})
	}, 1300, 64, 60, 1100},
	{"proven hang-ups", func(f *flooded) {
		f.times(10000, func(p *hostile.Peer) error {
			c, err := p.Prove(wire.RoleComm, nil)
			if err == nil {
				c.Close()
			}
			return err
		})
	}, 1300, 64, 60, 4},
	{"refusals of groups that never were", func(f *flooded) {
		s, _, _ := f.joined()
		for n := uint64(1); n <= 20000; n++ {
			m := wire.Refused{Header: wire.Header{Comm: 1}, Seq: n << 20, Size: 2, Room: 1}
			if s.Tell(&m) != nil {
				break
			}
		}
		s.CloseWrite()
		s.Drained(patience)
	}, 20, 64, 20, 8},
	{"a message ahead that nobody receives", func(f *flooded) {
		_, c, recv := f.joined()
		at, mh := f.b.mem(recv, 4096)
		const groups = 10000
		w := f.b.h.GoIn(4*patience, "recv", "bw", host.Args{"on", f.b.n.As, "role", "recv", "comm", recv, "mh", mh, "buf", at, "size", 8,
			"span", 4096, "count", groups, "window", 8, "limit", 3 * patience})
		c.SetDeadline(time.Now().Add(3 * patience))
		ahead := hostile.Frame{Kind: hostile.FrameAhead, Entry: 255, Len: 8, Size: 8, Offset: 4711, Seq: 1}
		c.Write(append(ahead.Append(nil), make([]byte, 8)...))
		sent := 0
		for ; sent < groups; sent++ {
			cts, err := c.Bytes(hostile.FrameSize)
			if err != nil {
				break
			}
			data := hostile.Frame{Kind: hostile.FrameData, Len: 8, Size: 8, Seq: binary.LittleEndian.Uint64(cts[24:])}
			if _, err := c.Write(append(data.Append(nil), make([]byte, 8)...)); err != nil {
				break
			}
		}
		began := time.Now()
		_, err := w.Wait()
		f.t.Logf("%d of %d groups; the receiver said %v, %v later", sent, groups, err, time.Since(began))
	}, 20, 64, 20, 8},
}

// TestFloods puts a process through each flood and shows what it costs: descriptors, memory, lines of the log. Afterwards
// whoever has the handle gets on.
func TestFloods(t *testing.T) {
	for _, fl := range floods {
		t.Run(fl.name, func(t *testing.T) {
			t.Parallel()
			b := start(t, "listening", newest, "WEFT_TIMEOUT=3")
			_, err := b.h.RaiseFiles()
			must(t, err, "limit of files")
			f := &flooded{t: t, b: b}
			f.handle, f.lc = b.listen()
			f.h, _ = addr(t, f.handle)
			before, lines := stat(t, b), len(b.h.Logs())
			stop, peak := make(chan struct{}), make(chan host.Stat)
			go func() { peak <- highest(b, stop) }()
			began := time.Now()
			fl.does(f)
			took := time.Since(began)
			close(stop)
			top := <-peak
			var left host.Stat
			settle(t, "what the flood leaves", func() (string, bool) {
				left = stat(t, b)
				return "descriptors", left.FDs-before.FDs <= fl.left
			})
			left = stat(t, b)
			said := len(b.h.Logs()) - lines
			t.Logf("%-45s %6.1fs  descriptors %5d, at most %+5d, left %+5d;  RSS %5.1f MiB, at most %+6.1f, left %+6.1f;  threads at most %d;  lines %d", fl.name,
				took.Seconds(), before.FDs, top.FDs-before.FDs, left.FDs-before.FDs, mib(before.RSS), mib(top.RSS-before.RSS), mib(left.RSS-before.RSS), top.Threads, said)
			if n := top.FDs - before.FDs; n > fl.fds {
				t.Errorf("%d descriptors at once, at most %d are allowed", n, fl.fds)
			}
			if n := top.RSS - before.RSS; n > fl.rss<<20 {
				t.Errorf("%.1f MiB, at most %d are allowed", mib(n), fl.rss)
			}
			if n := left.FDs - before.FDs; n > fl.left {
				t.Errorf("%d descriptors are held still, at most %d are allowed", n, fl.left)
			}
			if said > fl.lines {
				t.Errorf("%d lines in the log, at most %d are allowed; the last: %v", said, fl.lines, b.h.Logs()[lines+said-3:])
			}
			for _, c := range f.open {
				c.Close()
			}
			if fl.left < 100 { // else its connections come before
				legitimate(t, b, f.handle, f.lc)
			}
		})
	}
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

func stat(t testing.TB, p *peer) host.Stat {
	t.Helper()
	s, err := p.h.Stat()
	must(t, err, "stat")
	return s
}

// highest looks at a process until stop is closed.
func highest(p *peer, stop chan struct{}) (top host.Stat) {
	for done := false; !done; {
		select {
		case <-stop:
			done = true
		case <-time.After(50 * time.Millisecond):
		}
		if s, err := p.h.Stat(); err == nil {
			top.FDs, top.RSS, top.Threads = max(top.FDs, s.FDs), max(top.RSS, s.RSS), max(top.Threads, s.Threads)
		}
	}
	return top
}
