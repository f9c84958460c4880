package transport

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"weft/internal/hostcalls"
	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/fastpath"
	"weft/transport/rendezvous"
	"weft/transport/tcp"
	"weft/transport/wire"
)

// simPair is a comm over RDMA between two processes.
func simPair(t *testing.T, env map[string]string) (a, b *process, s, r *Comm) {
	t.Helper()
	a, b = startSim(t, "=simA", env), startSim(t, "=simB", env)
	s, r = pair(t, a, b)
	if !overVerbs(s) || !overVerbs(r) {
		t.Fatalf("TCP: %q %q", a.log.Lines(), b.log.Lines())
	}
	return a, b, s, r
}

// Over RDMA a comm has no stream: what is left of its connect is the control connection.
func TestSimFirstStreamEnds(t *testing.T) {
	a, b := startSim(t, "=simA", nil), startSim(t, "=simB", nil)
	l, h := b.listen(t, wire.HandleMax)
	defer l.Close()
	for range 3 {
		s, r := meet(t, a, l, h)
		if !overVerbs(s) || !overVerbs(r) {
			t.Fatalf("TCP: %q %q", a.log.Lines(), b.log.Lines())
		}
	}
	if in, out := connections(t, h); in != 1 || out != 1 {
		t.Errorf("%d connections accepted, %d opened", in, out)
	}
}

// What a comm that failed had posted must not reach memory that the host takes back: its queue pairs are in ERR.
func TestSimFailedCommIsFenced(t *testing.T) {
	_, _, s, r := simPair(t, nil)
	if q := laneQP(t, s, 0); q.State != stateRTS {
		t.Fatalf("QP %d is in state %d", q.Number, q.State)
	}
	s.Fail(report.Errorf(report.Host, "test", "a cause"))
	eventually(t, "the card is told", func() bool { return laneQP(t, s, 0).State == stateErr })
	noneLeft(t, s, r)
}

// noQPLeft makes comms until leaked queue pairs would show.
func noQPLeft(t *testing.T, a, b *process) {
	t.Helper()
	for range simQPs {
		for _, p := range []*process{a, b} { // what others leave would hide it
			p.pool.Empty()
		}
		s, r := pair(t, a, b)
		if !overVerbs(s) || !overVerbs(r) {
			t.Fatalf("something is left: %q %q", a.log.Lines(), b.log.Lines())
		}
		s.Close()
		r.Close()
	}
}

// until drives x until it ends, and returns its code.
func until(t *testing.T, what string, x *transfer) int32 {
	t.Helper()
	drive(t, what, x)
	return x.code
}

func TestSimCloseWithRequestsEndsThePeers(t *testing.T) {
	a, b, s, r := simPair(t, nil)
	dst := buffer(t, 4096)
	in := recv(r, register(t, r, dst, 4096))
	in.step()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if code := until(t, "the receive ends", in); code != testCode(&report.Error{Cause: report.Peer}, 0) || b.log.Count("WARN", "the peer closed") != 1 {
		t.Errorf("code %d, %q", code, b.log.Lines())
	}
	r.Close()
	noQPLeft(t, a, b)
}

// A closed comm waits for its peer, but not for one that has given its end up.
func TestSimClosedCommWhosePeerFails(t *testing.T) {
	_, _, s, r := simPair(t, lazyFlush)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it waits", func() bool { return objects(t).QPs == 2 })
	r.Fail(report.Errorf(report.Host, "test", "for a reason of its own"))
	eventually(t, "no queue pair but the peer's", func() bool { return objects(t).QPs == 1 })
	noneLeft(t, r)
}

func TestSimSendToAClosedPeerEnds(t *testing.T) {
	a, b, s, r := simPair(t, nil)
	out := send(s, register(t, s, buffer(t, 4096), 4096))
	r.Close()
	if code := until(t, "the send ends", out); code != testCode(&report.Error{Cause: report.Peer}, 0) || a.log.Count("WARN", "the peer closed") != 1 {
		t.Errorf("code %d, %q", code, a.log.Lines())
	}
	s.Close()
	noQPLeft(t, a, b)
}

// A receiver that closes in good order before its sender does is no news. It is for a host that asks for more: a WARN for
// one comm, and INFO for the others that the same peer closed.
func TestSimPeerClosesInGoodOrder(t *testing.T) {
	a, b := startSim(t, "=simA", nil), startSim(t, "=simB", nil)
	var all []*Comm
	for range 2 {
		s, r := pair(t, a, b)
		move(t, s, r, 100_000)
		r.Close()
		all = append(all, s)
	}
	for _, s := range all {
		eventually(t, "the end is known", s.Over)
	}
	if n := a.log.Count("", "the peer closed"); n != 0 {
		t.Errorf("%d lines about a peaceful end: %q", n, a.log.Lines())
	}
	for _, s := range all {
		out := send(s, register(t, s, buffer(t, 4096), 4096))
		if code := until(t, "the send ends", out); code != testCode(&report.Error{Cause: report.Peer}, 0) {
			t.Errorf("code %d", code)
		}
		again := send(s, register(t, s, buffer(t, 4096), 4096))
		until(t, "a further send ends", again)
	}
	if w, i := a.log.Count("WARN isend", "the peer closed the connection"), a.log.Count("INFO", "isend", "the peer closed the connection"); w != 1 || i != 1 {
		t.Errorf("%d warnings and %d others: %q", w, i, a.log.Lines())
	}
	for _, s := range all {
		s.Close()
	}
	noQPLeft(t, a, b)
}

func TestSimDeregisterCutsRequestsOff(t *testing.T) {
	a, b, s, r := simPair(t, nil)
	dst := buffer(t, 4096)
	buf := register(t, r, dst, 4096)
	in := recv(r, buf)
	in.step()
	if in.req == 0 {
		t.Fatal("not posted")
	}
	hostcalls.Test(in.req) // its CTS is out
	if err := r.DeregMr(buf.Handle); err != nil {
		t.Fatal(err)
	}
	if code := until(t, "the receive ends", in); code != testCode(&report.Error{Cause: report.Misuse}, 0) {
		t.Errorf("code %d", code)
	}
	src := buffer(t, 4096)
	src[0] = 1
	out := send(s, register(t, s, src, 4096))
	if code := until(t, "the send ends", out); code == 0 || dst[0] != 0 {
		t.Errorf("code %d, wrote %d", code, dst[0])
	}
	s.Close()
	r.Close()
	noQPLeft(t, a, b)
}

func TestSimFailureIsExplainedAndTold(t *testing.T) {
	a, b, s, r := simPair(t, map[string]string{"NCCL_IB_TIMEOUT": "10", "NCCL_IB_RETRY_CNT": "3"})
	dst, src := buffer(t, 4096), buffer(t, 4096)
	in := recv(r, register(t, r, dst, 4096))
	in.step()
	hostcalls.Test(in.req)
	command(t, "blackhole simB both")
	out := send(s, register(t, s, src, 4096))
	code := until(t, "the send ends", out)
	command(t, "blackhole simB off")
	if code == 0 || a.log.Count("WARN", "RETRY_EXC_ERR", "a data write") != 1 {
		t.Errorf("code %d, %q", code, a.log.Lines())
	}
	if code := until(t, "the receive ends", in); code == 0 || b.log.Count("WARN", "RETRY_EXC_ERR") != 1 {
		t.Errorf("code %d, %q", code, b.log.Lines())
	}
	s.Close()
	r.Close()
	noQPLeft(t, a, b)
}

func TestSimFlush(t *testing.T) {
	for mode, want := range map[string]bool{"always": true, "never": false, "auto": false} {
		_, _, s, r := simPair(t, map[string]string{"WEFT_FLUSH": mode})
		dst, src := buffer(t, 4096), buffer(t, 4096)
		to := register(t, r, dst, 4096)
		in, out := recv(r, to), send(s, register(t, s, src, 4096))
		drive(t, "data", in, out)
		req, code := hostcalls.Iflush(r.Handle(), to)
		if code != 0 || (req != 0) != want {
			t.Errorf("%s: request %#x, code %d", mode, req, code)
		}
		if req != 0 {
			x := &transfer{req: req}
			if code := until(t, "the flush ends", x); code != 0 {
				t.Errorf("%s: code %d", mode, code)
			}
		}
		s.Close()
		r.Close()
	}
}

// A flush that fails is not blamed on a queue pair of data.
func TestSimFlushFailureNamesItsQueuePair(t *testing.T) {
	for _, c := range []struct{ what, command, says string }{
		{"completion", "error simB 1 LOC_PROT_ERR lost %d", "a flush read ended LOC_PROT_ERR"},
		{"post", "fail post_send 1 EIO", "ibv_post_send of a flush"},
	} {
		t.Run(c.what, func(t *testing.T) {
			_, b, s, r := probedPair(t, map[string]string{"WEFT_FLUSH": "always", "WEFT_LAZY": "off"})
			to := register(t, r, buffer(t, 4096), 4096)
			in, out := recv(r, to), send(s, register(t, s, buffer(t, 4096), 4096))
			drive(t, "data", in, out)
			number := loopsOf(t, r)[0]
			if strings.Contains(c.command, "%d") {
				c.command = fmt.Sprintf(c.command, number)
			}
			command(t, c.command)
			x := &transfer{}
			if x.req, x.code = hostcalls.Iflush(r.Handle(), to); x.req != 0 {
				until(t, "the flush ends", x)
			}
			if x.code == 0 || b.log.Count("WARN", c.says, fmt.Sprintf("QP %d ", number)) != 1 {
				t.Errorf("code %d, not QP %d: %q", x.code, number, b.log.Lines())
			}
			s.Close()
			r.Close()
		})
	}
}

// stacks are those of all goroutines.
func stacks() string {
	b := make([]byte, 1<<20)
	return string(b[:runtime.Stack(b, true)])
}

// Whatever a peer repeats, one goroutine waits for what it left behind.
func TestSimPeerClosesOnce(t *testing.T) {
	_, _, s, r := simPair(t, nil)
	waiting := func() int { // those of earlier tests too
		return strings.Count(stacks(), "created by weft/transport/lanes.(*Carrier).Left")
	}
	before := waiting()
	closed := wire.Closed{Header: r.Member().Header()}
	last := r.Member().Session.Join(1 << 40)
	for range 5 {
		s.Member().Session.Tell(&closed)
	}
	s.Member().Session.Tell(&wire.Failed{Header: last.Header(), Reason: "all was said before"})
	heardOver(t, last)
	r.Member().Session.Leave(last)
	if n := waiting() - before; n > 1 {
		t.Errorf("%d goroutines", n)
	}
	s.Close()
	r.Close()
}

// The control connection may tell that the peer has closed before the comm is
// built here, from what came by another connection.
func TestSimPeerClosesBeforeTheCommIsBuilt(t *testing.T) {
	_, b, s, r := simPair(t, nil)
	m := r.Member()
	m.Carry(nil)
	closed := wire.Closed{Header: m.Header()}
	s.Member().Session.Tell(&closed)
	heardOver(t, m)
	r.Attached(m)
	in := recv(r, register(t, r, buffer(t, 4096), 4096))
	in.step()
	if code := until(t, "the receive ends", in); code != testCode(&report.Error{Cause: report.Peer}, 0) || b.log.Count("WARN", "the peer closed") != 1 {
		t.Errorf("code %d, %q", code, b.log.Lines())
	}
	s.Close()
	r.Close()
}

// The connecting side may have its comm already when the listening side gives it
// up, and over RDMA nothing but a message tells it.
func TestSimGivingUpIsTold(t *testing.T) {
	_, b, s, r := simPair(t, nil)
	l, _ := b.listen(t, wire.HandleMax)
	defer l.Close()
	const id = 1 << 40
	mine := s.Member().Session.Join(id)
	in := &inbound{ctx: b.ctx, listener: l, member: r.Member().Session.Join(id), deadline: time.AfterFunc(time.Hour, func() {})}
	in.abort(nil)
	heardOver(t, mine)
	if mine.ClosedWell() {
		t.Error("told that it was closed in good order")
	}
	s.Close()
	r.Close()
}

// The listening side may have its comm already when the connecting side gives it
// up, be it right behind its go.
func TestSimGivingUpBehindGoIsTold(t *testing.T) {
	a, b, s, r := simPair(t, nil)
	l, h := b.listen(t, wire.HandleMax)
	defer l.Close()
	parsed, err := wire.ParseHandle(h)
	if err != nil {
		t.Fatal(err)
	}
	d := &dial{ctx: a.ctx, dev: a.Devices()[a.dev], handle: parsed, trafficClass: -1}
	mine := a.ctx.hello(d.dev)
	w, err := a.net.Race(t.Context(), &d.handle, rendezvous.Paths(d.dev.Interfaces(), &d.handle),
		rendezvous.Opening{Role: wire.RoleComm, First: mine.Append(nil), Options: tcp.DataOptions(a.cfg.Knobs, -1)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Conn.Close()
	peer, wants, err := d.agree(w)
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.carried(t.Context(), &carrier.Call{For: a.ctx.comm(d.dev, fastpath.Send, rendezvous.EndName(peer, w.Conn), -1), Session: s.Member().Session, Handle: &d.handle, Won: w, Wants: *wants})
	if err != nil || c.last.Flags&wire.FlagVerbs == 0 {
		t.Fatal(c, err)
	}
	if err := w.Say(c.last.Append(nil)); err != nil {
		t.Fatal(err)
	}
	c.leave(errAbandoned.Error())
	late, err := accept(l)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the listening side hears", late.Over)
	if n := b.log.Count("WARN", "gave the connection up: "+errAbandoned.Error()); n != 1 {
		t.Errorf("%q", b.log.Lines())
	}
	noneLeft(t, s, r, late)
}

func TestSimSessionEndFailsTheComm(t *testing.T) {
	_, b, s, r := simPair(t, nil)
	dst := buffer(t, 4096)
	in := recv(r, register(t, r, dst, 4096))
	in.step()
	s.Member().Session.Conn.Close()
	if code := until(t, "the receive ends", in); code == 0 {
		t.Errorf("%q", b.log.Lines())
	}
	s.Close()
	r.Close()
}
