package transport

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"weft/transport/verbs/event"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/qp"
)

// The pool holds WEFT_POOL closed connections; the oldest go first.
func TestSimPoolIsBounded(t *testing.T) {
	for most, kept := range map[string]int{"0": 0, "2": 2} {
		a, b, end := keptPair(t, map[string]string{"WEFT_POOL": most})
		before := objects(t)
		var open [][2]*Comm
		for range 3 {
			s, r := pair(t, a, b)
			complete(t, b, s, r)
			open = append(open, [2]*Comm{s, r})
		}
		full := objects(t)
		for _, c := range open {
			c[0].Close()
			c[1].Close()
			over(t, c[0], c[1])
		}
		each := (full.QPs - before.QPs) / 3
		eventually(t, fmt.Sprintf("%d are kept", kept), func() bool {
			return a.parked() == kept && b.parked() == kept && objects(t).QPs == before.QPs+kept*each
		})
		for i := range 3 {
			s, r := pair(t, a, b)
			if reused(t, s, r) != (i < kept) {
				t.Errorf("WEFT_POOL=%s: connection %d: %q", most, i, a.log.Lines())
			}
			open[i] = [2]*Comm{s, r}
		}
		for _, c := range open {
			c[0].Close()
			c[1].Close()
		}
		end()
	}
}

// Both sides keep the same ones, in whatever order they close.
func TestSimPoolKeepsAlike(t *testing.T) {
	a, b, end := keptPair(t, map[string]string{"WEFT_POOL": "2"})
	var s, r [5]*Comm
	for i := range s {
		s[i], r[i] = pair(t, a, b)
		complete(t, b, s[i], r[i])
	}
	for i := range s {
		s[i].Close()
		r[(i*3)%5].Close()
	}
	over(t, s[:]...)
	over(t, r[:]...)
	for i := range 3 {
		s[i], r[i] = pair(t, a, b)
		if reused(t, s[i], r[i]) != (i < 2) {
			t.Errorf("connection %d: %q %q", i, a.log.Lines(), b.log.Lines())
		}
	}
	for i := range 3 {
		s[i].Close()
		r[i].Close()
	}
	end()
}

// alarms are what wakes a process' pool, newest last. A test has them ring early.
type alarms struct {
	sync.Mutex
	all []*time.Timer   // protected, as all below
	in  []time.Duration // that each was set for
}

func (a *alarms) set(d time.Duration, f func()) *time.Timer {
	a.Lock()
	defer a.Unlock()
	a.all, a.in = append(a.all, time.AfterFunc(d, f)), append(a.in, d)
	return a.all[len(a.all)-1]
}

// ring has the last one ring, which was set for when what the pool keeps is poolAge old.
func (a *alarms) ring(t *testing.T) {
	t.Helper()
	a.Lock()
	defer a.Unlock()
	if len(a.all) == 0 || a.in[len(a.in)-1] > poolAge {
		t.Fatalf("set for %v", a.in)
	}
	a.all[len(a.all)-1].Reset(0)
}

// What is kept goes with whatever would have to ask for it, on both sides.
func TestSimPoolEnds(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(t *testing.T, a, b *process)
		here bool // the other side goes on
	}{
		"age": {func(t *testing.T, a, b *process) { a.alarms.ring(t); b.alarms.ring(t) }, false},
		"the session": {func(t *testing.T, a, _ *process) {
			a.kept().Session().Conn.Close()
		}, false},
		"the last context": {func(t *testing.T, a, b *process) { a.ctx.Close(); b.ctx.Close() }, false},
		"the card":         {func(t *testing.T, _, _ *process) { command(t, "event simA DEVICE_FATAL") }, true},
		"a queue pair": {func(t *testing.T, a, _ *process) {
			command(t, fmt.Sprintf("event simA QP_FATAL %d", a.parted.lanes[0][0]))
		}, true},
		"a completion queue": {func(t *testing.T, a, _ *process) {
			command(t, fmt.Sprintf("event simA CQ_ERR %d", a.parted.cq))
		}, true},
		"the port": {func(t *testing.T, _, _ *process) {
			command(t, "link simA down")
			t.Cleanup(func() { command(t, "link simA up") })
		}, true},
		"a GID": {func(t *testing.T, _, _ *process) {
			command(t, "gid simA 3 10.9.99.1/24")
			t.Cleanup(func() { command(t, "gid simA 3 none") })
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, end := leftover(t, nil)
			c.do(t, a, b)
			eventually(t, "it is gone", func() bool { return a.parked() == 0 && (c.here || b.parked() == 0) })
			if c.here && b.parked() != 1 {
				t.Error("the other side has nothing")
			}
			if name != "the last context" {
				end()
			}
		})
	}
}

// With the last connection everything goes, the protection domains too: the next
// one allocates them anew, which fails here.
func TestSimPoolLeavesNothing(t *testing.T) {
	a, b, end := leftover(t, nil)
	end()
	eventually(t, "no memory is registered", func() bool { return objects(t).MRs == 0 })
	for _, p := range []*process{a, b} {
		eventually(t, "no domain", func() bool { // it goes a moment after what was made in it
			command(t, "fail alloc_pd 1 EIO")
			pd, err := p.devices.Found()[0].Verbs.AcquirePD()
			if err != nil {
				return true
			}
			if err := pd.Release(); err != nil {
				t.Error(err)
			}
			return false
		})
	}
	for nth := 1; nth <= 2; nth++ { // here and there
		command(t, fmt.Sprintf("fail alloc_pd %d EIO", nth))
		s, r := pair(t, a, b)
		if overVerbs(s) {
			t.Errorf("domain %d was there", nth)
		}
		s.Close()
		r.Close()
		over(t, s, r)
	}
}

// Nothing of an event that concerns something else.
func TestSimPoolOutlivesOthersEvents(t *testing.T) {
	a, b, end := leftover(t, nil)
	s, r := pair(t, a, b)
	command(t, "event simC DEVICE_FATAL", "link simC down", "link simC up")
	other := &qp.QP{}
	s2, r2 := pair(t, a, b)
	for _, e := range []event.Event{{Kind: ibv.EventQPFatal, NIC: "simA", QP: other}, {Kind: ibv.EventCommEst, NIC: "simA"}, {Kind: ibv.EventDeviceFatal, NIC: "simC"}} {
		a.pool.Heard(&e)
	}
	if !reused(t, s, r) {
		t.Error("it was gone before")
	}
	part(t, a, b, s, r)
	for _, e := range []event.Event{{Kind: ibv.EventQPFatal, NIC: "simA", QP: other}, {Kind: ibv.EventCommEst, NIC: "simA"}, {Kind: ibv.EventDeviceFatal, NIC: "simC"}} {
		a.pool.Heard(&e)
	}
	command(t, fmt.Sprintf("event simA QP_FATAL %d", numbersOf(s2)[0][0]))
	eventually(t, "the other connection's end", s2.Over)
	if a.parked() != 1 {
		t.Error("it is gone")
	}
	s2.Close()
	r2.Close()
	end()
}

// A card that has no queue pair left gets those of the pool.
func TestSimPoolYields(t *testing.T) {
	a, b := startSim(t, "=simA", map[string]string{"NCCL_IB_QPS_PER_CONNECTION": "5", "WEFT_LAZY": "off"}), startSim(t, "=simB", nil)
	keeper, other := pair(t, a, b)
	complete(t, b, keeper, other)
	var open [][2]*Comm
	for range 2 {
		s, r := pair(t, a, b)
		complete(t, b, s, r)
		open = append(open, [2]*Comm{s, r})
	}
	for _, c := range open {
		part(t, a, b, c[0], c[1])
	}
	a.ctx = a.NewContext(ContextOptions{Table: aTable, TrafficClass: 8}) // which theirs is not
	for range 2 {
		s, r := pair(t, a, b)
		if !overVerbs(s) || reused(t, s, r) {
			t.Fatalf("%q %q", a.log.Lines(), b.log.Lines())
		}
		move(t, s, r, 1000)
		defer r.Close()
		defer s.Close()
	}
	if a.parked() != 0 || a.pool.Yield() {
		t.Error("it has something left")
	}
}

// A connection that is closed here and not there yet when its card fails leaves
// nothing: what the pool keeps would keep the card from being opened anew.
func TestSimPoolRefusesWhatAnEventMeant(t *testing.T) {
	for name, happens := range map[string]func(qpn uint32) string{
		"the card":     func(uint32) string { return "event simA DEVICE_FATAL" },
		"a queue pair": func(qpn uint32) string { return fmt.Sprintf("event simA QP_FATAL %d", qpn) },
	} {
		t.Run(name, func(t *testing.T) {
			a, b, end := keptPair(t, nil)
			s, r := pair(t, a, b)
			complete(t, b, s, r)
			move(t, s, r, 1000)
			heard := make(chan struct{})
			once := sync.OnceFunc(func() { close(heard) })
			defer a.cfg.Verbs.Subscribe(func(event.Event) { once() })() // behind the core
			number := numbersOf(s)[0][0]
			s.Close()
			command(t, happens(number))
			<-heard
			eventually(t, "it is acted on", func() bool {
				return !strings.Contains(stacks(), "created by weft/transport/liveness.(*Watcher).Fatal")
			})
			r.Close()
			over(t, s, r)
			if a.parked() != 0 {
				t.Error("it is kept")
			}
			end()
		})
	}
}
