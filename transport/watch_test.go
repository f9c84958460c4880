package transport

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"weft/internal/hostcalls"
	"weft/internal/report"
	"weft/transport/liveness"
	"weft/transport/wire"
)

// noneLeft closes comms and waits until the simulated devices are as empty as before the first.
func noneLeft(t *testing.T, all ...*Comm) {
	t.Helper()
	for _, c := range all {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	w, err := simWorld()
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "no queue pair, completion queue and registration", func() bool {
		o, err := w.Count(os.Getpid())
		return err == nil && o.QPs == 0 && o.CQs == 0 && o.MRs == 0
	})
}

var (
	codePeer    = 100 + int32(report.Peer)
	codeNetwork = 100 + int32(report.Network)
	codeHost    = 100 + int32(report.Host)
)

// awaiting is a receive whose CTS is out.
func awaiting(t *testing.T, r *Comm, size int) *transfer {
	t.Helper()
	in := recv(r, register(t, r, buffer(t, size), size))
	eventually(t, "posting a receive", func() bool { in.step(); return in.req != 0 })
	hostcalls.Test(in.req)
	return in
}

// The NIC's own retries, at their default, would take longer than these tests wait.
func TestSilentPathEndsBothSides(t *testing.T) {
	for _, c := range []struct{ name, cut, mend string }{
		{"nothing arrives", "blackhole simB rx", "blackhole simB off"},
		{"no answer arrives", "blackhole simB tx", "blackhole simB off"},
		{"nothing either way", "blackhole simA both", "blackhole simA off"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b, s, r := probedPair(t, nil)
			idle, idleIn := pair(t, a, b)
			in := awaiting(t, r, 4096)
			command(t, c.cut)
			defer command(t, c.mend)
			out := send(s, register(t, s, buffer(t, 4096), 4096))
			drive(t, "both ends", out, in)
			eventually(t, "the receiver's end", r.Over) // what arrived is done all the same
			if out.code != codeNetwork && out.code != codePeer || in.code != codeNetwork && in.code != codePeer && in.code != 0 {
				t.Errorf("codes %d and %d", out.code, in.code)
			}
			if a.log.Count("WARN", "liveness on simA", "port 10.9.1.2 does not answer 10.9.1.1")+b.log.Count("WARN", "liveness on simB", "port 10.9.1.1 does not answer 10.9.1.2") == 0 {
				t.Errorf("%q %q", a.log.Lines(), b.log.Lines())
			}
			command(t, c.mend)
			move(t, idle, idleIn, 1000) // it asked for nothing meanwhile
			noneLeft(t, s, r, idle, idleIn)
		})
	}
}

// A receive whose CTS got lost is found by its own side; the sender, which sees nothing, is told.
func TestLostRequestToSendEndsBothSides(t *testing.T) {
	a, b, s, r := probedPair(t, nil)
	command(t, "blackhole simA rx")
	defer command(t, "blackhole simA off")
	in := awaiting(t, r, 4096)
	out := send(s, register(t, s, buffer(t, 4096), 4096))
	drive(t, "both ends", in, out)
	if in.code != codeNetwork || out.code != codePeer {
		t.Errorf("codes %d and %d", in.code, out.code)
	}
	if b.log.Count("WARN", "liveness on simB", "1 connection made no progress") != 1 || a.log.Count("WARN", "gave the connection up", "does not answer") != 1 {
		t.Errorf("%q %q", a.log.Lines(), b.log.Lines())
	}
	command(t, "blackhole simA off")
	noneLeft(t, s, r)
}

func TestLinkDownEndsBothSides(t *testing.T) {
	for _, dev := range []string{"simA", "simB"} {
		t.Run(dev, func(t *testing.T) {
			a, b, s, r := probedPair(t, nil)
			in := awaiting(t, r, 4096)
			command(t, "link "+dev+" down")
			defer command(t, "link "+dev+" up")
			out := send(s, register(t, s, buffer(t, 4096), 4096))
			drive(t, "both ends", out, in)
			if out.code == 0 || in.code == 0 {
				t.Errorf("codes %d and %d: %q %q", out.code, in.code, a.log.Lines(), b.log.Lines())
			}
			noneLeft(t, s, r)
		})
	}
}

// A transfer that one request makes, and that takes several times what makes a comm suspect, goes on, and brings every byte.
func TestSlowTransferIsNoFailure(t *testing.T) {
	a, b, s, r := probedPair(t, nil)
	const size = 24 << 20
	src, dst := buffer(t, size), buffer(t, size)
	for i := range src {
		src[i] = byte(i ^ i>>8 ^ i>>16)
	}
	in := recv(r, register(t, r, dst, size))
	eventually(t, "posting a receive", func() bool { in.step(); return in.req != 0 })
	command(t, "rate simA 0.01")
	defer command(t, "rate simA 0")
	out := send(s, register(t, s, src, size))
	out.step()
	eventually(t, "asking", func() bool { out.step(); in.step(); return a.asked(t) })
	drive(t, "a slow transfer", out, in)
	if out.code != 0 || in.code != 0 || !bytes.Equal(src, dst) {
		t.Errorf("codes %d and %d, equal %v: %q %q", out.code, in.code, bytes.Equal(src, dst), a.log.Lines(), b.log.Lines())
	}
	noneLeft(t, s, r)
}

// A stopped process acknowledges, and takes nobody for dead when it goes on.
func TestStoppedPeerOverRDMAIsNoFailure(t *testing.T) {
	a := startSim(t, "=simA", map[string]string{"WEFT_TIMEOUT": "1"})
	p := spawn(t, "wait to receive", []string{childHCA + "==simB", "WEFT_TIMEOUT=1"})
	s, err := a.connect(p.handle)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"accepted", "posted"} { // stopped earlier, it would ask for nothing
		if s := p.line(t); s != want {
			t.Fatal(s)
		}
	}
	if !overVerbs(s) {
		t.Fatalf("TCP: %q", a.log.Lines())
	}
	eventually(t, "a probe", func() bool { return len(a.working(t)) == 1 })
	command(t, fmt.Sprint("stop ", p.Process.Pid))
	buf := register(t, s, buffer(t, 100), 100)
	buf.Tag = 1
	out := send(s, buf)
	eventually(t, "posting the send", func() bool { out.step(); return out.req != 0 })
	eventually(t, "asking", func() bool { return a.asked(t) }) // nobody polls, so nothing moves here either
	time.Sleep(3 * time.Second)
	p.Process.Signal(syscall.SIGCONT)
	drive(t, "the send", out)
	if code := p.line(t); out.code != 0 || code != "code 0" {
		t.Errorf("code %d there %q: %q", out.code, code, a.log.Lines())
	}
	noneLeft(t, s)
}

// A probe that breaks says nothing of the path: it is made anew, and the comms live.
func TestBrokenProbeIsMadeAnew(t *testing.T) {
	for _, c := range []struct {
		name   string
		break_ func(t *testing.T, qpnA, qpnB uint32)
	}{
		{"event here", func(t *testing.T, a, _ uint32) { command(t, fmt.Sprintf("event simA QP_FATAL %d", a)) }},
		{"event there", func(t *testing.T, _, b uint32) { command(t, fmt.Sprintf("event simB QP_FATAL %d", b)) }},
		{"refused", func(t *testing.T, a, _ uint32) { command(t, fmt.Sprintf("error simA 1 REM_INV_REQ_ERR lost %d", a)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b, s, r := probedPair(t, nil)
			first, qpnA := a.probe(t)
			_, qpnB := b.probe(t)
			c.break_(t, qpnA, qpnB)
			in := awaiting(t, r, 4<<20)
			command(t, "rate simA 0.002")
			defer command(t, "rate simA 0")
			out := send(s, register(t, s, buffer(t, 4<<20), 4<<20))
			out.step()
			eventually(t, "another probe", func() bool { n, _ := a.probe(t); return n > first && len(b.working(t)) == 1 })
			command(t, "rate simA 0")
			drive(t, "the transfer", out, in)
			if out.code != 0 || in.code != 0 {
				t.Errorf("codes %d and %d: %q %q", out.code, in.code, a.log.Lines(), b.log.Lines())
			}
			noneLeft(t, s, r)
		})
	}
}

// Without a probe the NIC decides, and both say so.
func TestNoProbeIsSaid(t *testing.T) {
	a, b, s, r := simPair(t, map[string]string{"NCCL_IB_TIMEOUT": "16", "NCCL_IB_RETRY_CNT": "3"})
	defer command(t, "fail create_qp 1000000000")
	command(t, "fail create_qp 1 ENOMEM 1000000")
	eventually(t, "giving up once", func() bool {
		return a.log.Count("INFO", "probe on simA", "ibv_create_qp", "until one works") == 1 || len(a.working(t)) == 1
	})
	for _, x := range a.working(t) { // it was there before the calls began to fail
		gone := wire.ProbeState{Number: x.number, State: wire.ProbeGone, Reason: "the test ends it"}
		if err := a.watch.Serve(x.on, gone.Append(nil)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "no probe", func() bool { return len(a.working(t))+len(b.working(t)) == 0 })
	in := awaiting(t, r, 4096)
	command(t, "blackhole simA both")
	defer command(t, "blackhole simA off")
	out := send(s, register(t, s, buffer(t, 4096), 4096))
	drive(t, "both ends", out, in)
	if out.code == 0 || in.code == 0 || a.log.Count("INFO", "there is no probe to ask")+b.log.Count("INFO", "there is no probe to ask") == 0 {
		t.Errorf("codes %d and %d: %q %q", out.code, in.code, a.log.Lines(), b.log.Lines())
	}
	command(t, "blackhole simA off")
	noneLeft(t, s, r)
}

// A probe ends with its session, also in the middle of a question.
func TestSessionEndEndsProbes(t *testing.T) {
	a, b, s, r := probedPair(t, map[string]string{"WEFT_TIMEOUT": "20"})
	awaiting(t, r, 4096)
	command(t, "blackhole simA both")
	defer command(t, "blackhole simA off")
	out := send(s, register(t, s, buffer(t, 4096), 4096))
	eventually(t, "a question", func() bool { out.step(); return a.asked(t) || b.asked(t) })
	s.Member().Session.Conn.Close()
	eventually(t, "no probe", func() bool {
		return len(othersThan(t, s))+len(othersThan(t, r)) == 0
	})
	command(t, "blackhole simA off")
	noneLeft(t, s, r)
}

// Each class of traffic is asked for in itself: what one class meets says nothing of another.
func TestEveryClassHasItsProbe(t *testing.T) {
	a, b := startSim(t, "=simA", nil), startSim(t, "=simB", map[string]string{"NCCL_IB_FIFO_TC": "16"})
	s, r := pair(t, a, b)
	a.ctx = a.NewContext(ContextOptions{Table: aTable, TrafficClass: 96})
	s2, r2 := pair(t, a, b)
	s3, r3 := pair(t, a, b)
	eventually(t, "a probe for each class", func() bool { // the listening side's are what the offers name
		classes := map[liveness.Class]int{}
		for _, x := range b.working(t) {
			classes[liveness.Class{SL: x.offer.SL, TC: x.offer.TC}]++
		}
		return len(a.working(t)) == 2 && len(classes) == 2 && classes[liveness.Class{}] == 1 && classes[liveness.Class{TC: 96}] == 1
	})
	for _, c := range []*Comm{s2, r2, s3, r3} {
		c.Close()
	}
	eventually(t, "the end of one", func() bool { return len(a.working(t)) == 1 && len(b.working(t)) == 1 })
	noneLeft(t, s, r)
}

// Of a comm over several pairs of ports, each is asked for itself; comms that do without the silent one live.
func TestSilentMemberEndsWhatUsesIt(t *testing.T) {
	env := map[string]string{"WEFT_STRIPE_MIN": "1024"}
	a, b := startSim(t, "=simA,simC", env), startSim(t, "=simB,simD", env)
	a.fusedWith(t, 0, 1)
	b.fusedWith(t, 0, 1)
	s, r := pair(t, a, b)
	a.dev, b.dev = 0, 0
	other, otherIn := pair(t, a, b)
	eventually(t, "a probe for each pair, on both sides", func() bool { return len(a.working(t)) == 2 && len(b.working(t)) == 2 })
	in := awaiting(t, r, 1<<20)
	command(t, "blackhole simD both")
	defer command(t, "blackhole simD off")
	out := send(s, register(t, s, buffer(t, 1<<20), 1<<20))
	drive(t, "both ends", out, in)
	if out.code == 0 || in.code == 0 || a.log.Count("WARN", "liveness on simC")+b.log.Count("WARN", "liveness on simD") == 0 {
		t.Errorf("codes %d and %d: %q %q", out.code, in.code, a.log.Lines(), b.log.Lines())
	}
	move(t, other, otherIn, 1000)
	command(t, "blackhole simD off")
	noneLeft(t, s, r, other, otherIn)
}

func TestProcessAsksItself(t *testing.T) {
	a := startSim(t, "=simA", nil)
	s, r := pair(t, a, a)
	eventually(t, "both ends of a probe", func() bool { return len(a.working(t)) == 2 })
	in := awaiting(t, r, 4<<20)
	command(t, "rate simA 0.002") // the lanes stand still for long enough to be asked about
	defer command(t, "rate simA 0")
	out := send(s, register(t, s, buffer(t, 4<<20), 4<<20))
	out.step()
	eventually(t, "both have asked", func() bool {
		all := a.working(t)
		return len(all) == 2 && all[0].asked && all[1].asked
	})
	command(t, "rate simA 0")
	drive(t, "the transfer", out, in)
	if out.code != 0 || in.code != 0 {
		t.Errorf("codes %d and %d: %q", out.code, in.code, a.log.Lines())
	}
	noneLeft(t, s, r)
}
