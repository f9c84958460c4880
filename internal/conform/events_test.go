package conform

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/internal/build"
	"weft/internal/host"
	"weft/internal/simverbs"
)

// checks runs a check of weft's own on one table.
func checks(t *testing.T, version int, env []string, check func(*Env)) {
	t.Helper()
	lib, err := build.Library()
	if err != nil {
		t.Fatal(err)
	}
	o := Outcome{Family: host.FamilyNet, Version: version, Rule: &Rule{ID: t.Name(), Check: check}}
	(&runner{o: &Options{Lib: lib, Host: hostProgram(t), Env: env, Patience: 10 * time.Second}}).judge(&o)
	if !o.OK() {
		t.Error(o.Fail)
	}
}

// TestNetEvents counts the events of one message, and reads them.
func TestNetEvents(t *testing.T) {
	card := func(n int) simverbs.Device {
		return simverbs.Device{Name: fmt.Sprintf("sim%d", n), PCI: fmt.Sprintf("0000:8%d:00.0", n), GIDs: []string{fmt.Sprintf("10.10%d.0.1/24", n)}}
	}
	split := []string{"NCCL_IB_SPLIT_DATA_ON_QPS=1", "WEFT_LAZY=off"}
	lanes := func(n int) []string {
		return append([]string{fmt.Sprintf("NCCL_IB_QPS_PER_CONNECTION=%d", n)}, split...)
	}
	const socket, pair = "socket", "QP"
	for _, c := range []struct {
		name        string
		env         []string
		rdma        bool
		size        int64
		sends, recv int // events
		kind        string
	}{
		{"tcp", nil, false, 300000, 1, 1, socket},
		{"tcp, small", nil, false, 8, 1, 1, socket},
		{"tcp, 4 streams", []string{"NCCL_NSOCKS_PERTHREAD=4", "NCCL_SOCKET_NTHREADS=1"}, false, 4 << 20, 1, 1, socket},
		{"tcp, off", []string{"WEFT_NET_EVENTS=0"}, false, 300000, 0, 0, ""},
		{"one lane", nil, true, 300000, 1, 1, pair},
		{"four lanes", lanes(4), true, 300000, 4, 1, pair},
		{"four lanes, small", lanes(4), true, 100, 1, 1, pair},
		{"twelve lanes", lanes(12), true, 3000000, 8, 1, pair},
		{"rdma, off", []string{"WEFT_NET_EVENTS=0"}, true, 300000, 0, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			env := slices.Clone(c.env)
			if c.rdma {
				env = append(env, simulated(t, card(0), card(1))...)
			}
			for version := host.SinceNetEvents; version <= host.FamilyNet.Newest(); version++ {
				checks(t, version, env, func(e *Env) {
					p := e.open("process")
					p.init("prof", 1)
					l := e.join(p, p, 0)
					a, b, ph := p.buf(c.size), p.buf(c.size), p.buf(64)
					ph.fillByte(1)
					for range 3 { // a slot is used again
						r, s := l.recvOp(1, b), l.sendOp(a, c.size, 1)
						e.run(r, s)
					}
					r, s := l.recvOp(1, b), l.sendOp(a, c.size, 1)
					s.extra, r.parts[0].PH = []any{"ph", ph.addr}, ph.at(32).addr
					e.run(r, s)
					sends, recvs := p.netEvents(ph.addr), p.netEvents(ph.at(32).addr)
					if len(sends) != c.sends || len(recvs) != c.recv {
						e.failf("v%d: %d events of the send, %d of the receive: %+v %+v", version, len(sends), len(recvs), sends, recvs)
					}
					p.eventsOf("send", ph.addr, c.size, true)
					p.eventsOf("receive", ph.at(32).addr, c.size, false)
					pairs := map[int64]bool{}
					for _, n := range append(sends, recvs...) {
						if n.kind() != c.kind || pairs[n.qp] && n.kind() == pair && n.op < 128 {
							e.failf("v%d: %+v is an event of a %s, of pairs %v", version, n, n.kind(), pairs)
						}
						pairs[n.qp] = true
					}
					if c.recv > 0 && recvs[0].last != c.size {
						e.failf("v%d: a receive's last word is %d bytes", version, recvs[0].last)
					}
				})
			}
		})
	}
}

// TestNetEventsEnd has the peer die, and a group refused: what began has an end.
func TestNetEventsEnd(t *testing.T) {
	sim := simverbs.Device{Name: "sim0", PCI: "0000:81:00.0", GIDs: []string{"10.101.0.1/24"}}
	for _, rdma := range []bool{false, true} {
		var env []string
		if rdma {
			env = simulated(t, sim)
		}
		ended := func(e *Env, p *proc, what string, handles ...host.Ptr) {
			for _, ph := range handles {
				for _, n := range p.netEvents(ph) {
					if n.stops != 1 {
						e.failf("%s: an event ends %d times: %+v", what, n.stops, n)
					}
				}
			}
		}
		checks(t, host.FamilyNet.Newest(), env, func(e *Env) {
			tx, rx := e.proc("sender"), e.open("receiver")
			rx.init("prof", 1)
			l := e.join(tx, rx, 0)
			l.move(1000, 1)
			b := rx.buf(100000)
			r := l.recvOp(1, b)
			r.parts[0].PH = b.addr
			for !r.post() {
				e.must(r.err, "irecv")
			}
			tx.h.Kill()
			for end := time.Now().Add(30 * time.Second); r.err == nil && time.Now().Before(end); {
				r.test()
			}
			if r.err == nil || len(rx.netEvents(b.addr)) != 1 {
				e.failf("the receive ended with %v and has %d events", r.err, len(rx.netEvents(b.addr)))
			}
			ended(e, rx, "receive of a peer that died", b.addr)
		})
		checks(t, host.FamilyNet.Newest(), env, func(e *Env) {
			p := e.open("process")
			p.init("prof", 1)
			l := e.join(p, p, 0)
			a, b := p.buf(2000), p.buf(1000)
			r, s := l.recvOp(1, b), l.sendOp(a, 2000, 1)
			s.extra, r.parts[0].PH = []any{"ph", a.addr}, b.addr
			if err := e.try(r, s); err == nil || !strings.Contains(err.Error(), "InvalidUsage") {
				e.failf("a send larger than its receive ended with %v", err)
			}
			for range 100 {
				for _, o := range []*op{r, s} {
					if o.req != 0 && !o.done && o.err == nil {
						o.test()
					}
				}
			}
			ended(e, p, "refused group", a.addr, b.addr)
		})
	}
}

// TestNetEventsThatNobodyWants has the callback of an NCCL without a profiler: it is left alone, and heard when one comes.
func TestNetEventsThatNobodyWants(t *testing.T) {
	sim := simverbs.Device{Name: "sim0", PCI: "0000:81:00.0", GIDs: []string{"10.101.0.1/24"}}
	for name, env := range map[string][]string{"tcp": nil, "rdma": simulated(t, sim)} {
		checks(t, host.FamilyNet.Newest(), env, func(e *Env) {
			p := e.open("process")
			p.init("prof", 1)
			count := func(a host.Args) *host.Reply {
				c, err := p.h.Call("main", "net.profiled", a)
				e.must(err, "counts of the profiler's callback")
				return c
			}
			l := e.join(p, p, 0)
			a, b, ph := p.buf(1000), p.buf(1000), p.buf(64)
			ph.fillByte(1)
			move := func(n int) {
				for range n {
					r, s := l.recvOp(1, b), l.sendOp(a, 1000, 1)
					s.extra, r.parts[0].PH = []any{"ph", ph.addr}, ph.at(32).addr
					e.run(r, s)
				}
			}
			count(host.Args{"deaf", 1})
			move(500)
			if n := count(nil).Int("unwanted"); n < 2 || n == 1000 {
				e.failf("%s: 1000 requests asked a profiler that is not there %d times", name, n)
			}
			count(host.Args{"deaf", 0})
			for end := time.Now().Add(20 * time.Second); len(p.netEvents(ph.addr)) == 0 || len(p.netEvents(ph.at(32).addr)) == 0; move(1) {
				if time.Now().After(end) {
					e.failf("%s: a profiler that came later hears nothing", name)
				}
			}
			move(20)
			if c := count(nil); c.Int("start") != c.Int("stop") || c.Int("start") < 42 || c.Int("null") != 0 {
				e.failf("%s: %d starts, %d stops, %d without a parent", name, c.Int("start"), c.Int("stop"), c.Int("null"))
			}
		})
	}
}

// TestNetEventsOfEmptyHandles has what NCCL 2.27 hands over where its profiler wants no net events: a struct without the pointer
// that its callback follows. 2.28 and later, which are told by their table, always have it there.
func TestNetEventsOfEmptyHandles(t *testing.T) {
	for version := host.SinceNetEvents; version <= host.FamilyNet.Newest(); version++ {
		checks(t, version, nil, func(e *Env) {
			p := e.open("process")
			p.init("prof", 1)
			l := e.join(p, p, 0)
			a, b, ph := p.buf(1000), p.buf(1000), p.buf(64)
			r, s := l.recvOp(1, b), l.sendOp(a, 1000, 1)
			s.extra, r.parts[0].PH = []any{"ph", ph.addr}, ph.at(32).addr
			e.run(r, s)
			if n := len(p.netEvents(ph.addr)) + len(p.netEvents(ph.at(32).addr)); n != 0 == (version == host.SinceNetEvents) {
				e.failf("v%d: %d events", version, n)
			}
		})
	}
}
