package transport

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/hostcalls"
	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/wire"
)

// spied is a carrier of streams that looks when its comm is fenced: just before the host can see the code, and once more
// behind it.
type spied struct {
	carrier.Carrier
	carrier.Streaming
	look func()
}

func (s spied) Fence() { s.look() }
func (s spied) Spoil() {}
func (s spied) Drain() {}
func (s spied) Left()  {}

// spying is the plain way with such carriers on the connecting side.
type spying struct {
	carrier.Plain
	look func()
}

func (w spying) Connect(ctx context.Context, c *carrier.Call) (*carrier.Made, error) {
	m, err := w.Plain.Connect(ctx, c)
	if err == nil {
		m.By = spied{m.By, m.By.(carrier.Streaming), w.look}
	}
	return m, err
}

// The host may end its process at the first code it gets: by then the peer is told, for it hears of the end while the
// fence, before which there is no code, takes its time.
func TestPeerIsToldBeforeTheHost(t *testing.T) {
	a, b := start(t, nil), start(t, nil)
	var r *Comm
	var fences atomic.Int32
	a.ways = []carrier.Way{spying{a.plain, func() {
		defer fences.Add(1)
		for end := time.Now().Add(testLimit); !r.Over(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Error("the peer is told after the host")
				return
			}
		}
	}}}
	s, peer := pair(t, a, b)
	r = peer
	defer s.Close()
	s.Fail(report.Errorf(report.Host, "test", "a cause"))
	if fences.Load() == 0 {
		t.Error("the host could see the code before the fence")
	}
	eventually(t, "both fences", func() bool { return fences.Load() == 2 })
	if b.log.Count("WARN", "gave the connection up: a cause") != 1 {
		t.Errorf("%q", b.log.Lines())
	}
	r.Close()
}

// A peer that says why and leaves at once: its cause counts, not the end of its connection.
func TestCauseComesBeforeTheEnd(t *testing.T) {
	_, b, s, r := simPair(t, nil)
	if err := fast(r).Hold(); err != nil { // so that neither can be acted on before the other is there
		t.Fatal(err)
	}
	m := r.Member()
	s.Member().Session.Tell(&wire.Failed{Header: m.Header(), Reason: "simA: a cause"})
	heardOver(t, m)
	m.Session.End(m.Session.Broken("reading", io.EOF))
	fast(r).Release()
	eventually(t, "the end", r.Over)
	if b.log.Count("WARN", "gave the connection up: simA: a cause") != 1 || b.log.Count("WARN", "EOF") != 0 {
		t.Errorf("%q", b.log.Lines())
	}
	noneLeft(t, s, r)
}

// A peer that closes while the host asks for more is told of as over RDMA: one WARN that names an abort, and INFO for what
// else it closes.
func TestStreamsEndByAClose(t *testing.T) {
	a, b := start(t, nil), start(t, nil)
	var sends []*transfer
	for range 3 {
		s, r := pair(t, a, b)
		defer s.Close()
		out := send(s, register(t, s, buffer(t, 1<<20), 1<<20)) // nothing receives it
		out.step()
		sends = append(sends, out)
		defer func() {
			if !s.Over() {
				t.Error("it goes on")
			}
		}()
		r.Close()
	}
	drive(t, "the sends", sends...)
	for _, out := range sends {
		if out.code != codePeer {
			t.Errorf("code %d", out.code)
		}
	}
	if w, i := a.log.Count("WARN isend", "the peer closed the connection", "this is an abort"), a.log.Count("INFO", "isend", "the peer closed the connection"); w != 1 || i != 2 || a.log.Count("", "closed stream") != 0 {
		t.Errorf("%d warnings and %d others: %q", w, i, a.log.Lines())
	}
}

// Where the host sees a stream's end first, the cause is said all the same.
func TestCauseIsSaidBehindTheEnd(t *testing.T) {
	b := start(t, nil)
	s, r := pair(t, start(t, nil), b)
	defer r.Close()
	defer s.Close()
	buf := buffer(t, 100)
	in := recv(r, register(t, r, buf, 100))
	eventually(t, "posting a receive", func() bool { in.step(); return in.req != 0 })
	hostcalls.Test(in.req)
	if err := unix.Shutdown(fdsOf(s)[0], unix.SHUT_WR); err != nil {
		t.Fatal(err)
	}
	drive(t, "the receive", in)
	if in.code != codePeer || b.log.Count("WARN", "the peer closed stream 0") != 1 {
		t.Fatalf("code %d: %q", in.code, b.log.Lines())
	}
	s.Fail(report.Errorf(report.Host, "test", "%w", errors.New("a cause")))
	eventually(t, "the cause", func() bool { return b.log.Count("WARN", "gave the connection up: a cause") == 1 })
}
