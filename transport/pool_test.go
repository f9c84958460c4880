package transport

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/internal/simverbs"
	"weft/transport/carrier"
	"weft/transport/lanes"
	"weft/transport/verbs/port"
)

// kits are the closed connections that a process keeps, the oldest first.
func (p *process) kits() (all []*lanes.Kit) {
	p.pool.Forget(func(k *lanes.Kit) bool { all = append(all, k); return false })
	return all
}

// parked is how many that are.
func (p *process) parked() int { return len(p.kits()) }

// kept is the oldest.
func (p *process) kept() *lanes.Kit { return p.kits()[0] }

// parted is what the last comm that part closed had: its lanes' queue pairs, here and there, the one for flushes, 0 for none,
// and their completion queue.
type parted struct {
	lanes    [][2]uint32
	loop, cq uint32
}

func partOf(t *testing.T, c *Comm) parted {
	t.Helper()
	p := parted{lanes: numbersOf(c), cq: laneQP(t, c, 0).CQ}
	if loops := loopsOf(t, c); len(loops) > 0 {
		p.loop = loops[0]
	}
	return p
}

// objects are those of all processes of the test.
func objects(t *testing.T) simverbs.Objects {
	t.Helper()
	w, err := simWorld()
	if err != nil {
		t.Fatal(err)
	}
	o, err := w.Count(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// flushing is by how many ports a comm of b may have to flush what it receives.
func (b *process) flushing(r *Comm) int {
	mode, ports := b.cfg.Knobs.Text(knob.Flush), map[*port.Device]bool{}
	for _, p := range overRDMA(r).Routes() {
		if kinds, _ := p.Local.GPUMemory(); mode != "never" && (mode == "always" || kinds != 0) {
			ports[p.Local] = true
		}
	}
	return len(ports)
}

// complete waits until a comm to b has all that comes later.
func complete(t *testing.T, b *process, s, r *Comm) {
	t.Helper()
	grown(t, s, r, len(s.Carrier().(*lanes.Carrier).PairAt))
	m, flushes := r.Member().Session, make(chan struct{})
	r.Carrier().(*lanes.Carrier).Tick(m) // as the watch does soon
	m.Background.Loops.Add(report.Discard{}, func() { close(flushes) })
	select {
	case <-flushes:
	case <-time.After(testLimit):
		t.Fatal("its queue pairs for flushes do not come")
	}
	wanted := b.flushing(r) // the watch may have begun them itself, and adds them only now
	eventually(t, fmt.Sprintf("%d queue pairs for flushes", wanted), func() bool { return len(loopsOf(t, r)) == wanted })
}

// over waits until closed comms have ended, and what they leave is kept or gone.
func over(t *testing.T, all ...*Comm) {
	t.Helper()
	for _, c := range all {
		eventually(t, "the comm ends", func() bool { return !c.Member().Session.Has(c.Member().ID) })
	}
}

// part closes both sides of a comm, which both keep from then on.
func part(t *testing.T, a, b *process, s, r *Comm) {
	t.Helper()
	was, there := a.parked(), b.parked()
	a.parted, b.parted = partOf(t, s), partOf(t, r)
	for _, c := range []*Comm{s, r} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	over(t, s, r)
	eventually(t, "both sides keep the queue pairs", func() bool { return a.parked() == was+1 && b.parked() == there+1 })
}

// reused reports whether a comm has queue pairs of an earlier one, on both sides.
func reused(t *testing.T, s, r *Comm) bool {
	t.Helper()
	again := func(c *Comm) bool {
		return strings.Contains(overRDMA(c).Describe(""), " of an earlier connection")
	}
	x, y := again(s), again(r)
	if x != y {
		t.Errorf("%v here, %v there", x, y)
	}
	return x
}

// keptPair are two processes with a comm between them, without which they would
// keep nothing; end closes it, and nothing is left.
func keptPair(t *testing.T, env map[string]string) (a, b *process, end func()) {
	t.Helper()
	a, b, s, r := probedPair(t, env)
	if env["WEFT_LAZY"] != "demand" {
		complete(t, b, s, r)
	}
	return a, b, func() { t.Helper(); noneLeft(t, s, r) }
}

// leftover is that with queue pairs of one closed comm.
func leftover(t *testing.T, env map[string]string) (a, b *process, end func()) {
	t.Helper()
	a, b, end = keptPair(t, env)
	s, r := pair(t, a, b)
	complete(t, b, s, r)
	move(t, s, r, 100_000)
	part(t, a, b, s, r)
	return a, b, end
}

// A connection between the same ports has the queue pairs of the last one, again
// and again, and none is made any more.
func TestSimPoolServesAgain(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"one lane":     {},
		"four lanes":   with(lanes4, "WEFT_LAZY", "off"),
		"more to come": with(lanes4, "WEFT_LAZY", "background"),
		"flushed":      {"WEFT_FLUSH": "always"},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, end := leftover(t, env)
			before := objects(t)
			command(t, "fail create_qp 1 EIO 1000", "fail modify_qp 1 EIO 1000", "fail create_cq 1 EIO 1000")
			for i := range 100 {
				s, r := pair(t, a, b)
				lanes := len(s.Carrier().(*lanes.Carrier).PairAt)
				if !overVerbs(s) || !reused(t, s, r) || len(posted(s)) != lanes || len(posted(r)) != lanes {
					t.Fatalf("connection %d: %q %q", i, a.log.Lines(), b.log.Lines())
				}
				for _, size := range []int{1, 1 + rand.IntN(300_000), 70_000} {
					move(t, s, r, size)
				}
				for range 10 * (i % 10) {
					move(t, s, r, 100)
				}
				part(t, a, b, s, r)
			}
			command(t, "fail create_qp 1 EIO 0", "fail modify_qp 1 EIO 0", "fail create_cq 1 EIO 0")
			if now := objects(t); now != before {
				t.Errorf("%+v, then %+v: %q %q", before, now, a.log.Lines(), b.log.Lines())
			}
			if n := b.log.Count("INFO NET", "of an earlier connection"); n != 100 {
				t.Errorf("said %d times", n)
			}
			end()
		})
	}
}

// Many at once, both directions, closed in any order.
func TestSimPoolManyAtOnce(t *testing.T) {
	a, b, end := keptPair(t, nil)
	for range 5 {
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				x, y := a, b
				if i%2 == 1 {
					x, y = b, a
				}
				s, r := pair(t, x, y)
				if !overVerbs(s) || !overVerbs(r) {
					t.Errorf("TCP: %q %q", a.log.Lines(), b.log.Lines())
				}
				move(t, s, r, 100_000)
				if rand.IntN(2) == 0 {
					s, r = r, s
				}
				s.Close()
				time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
				r.Close()
			})
		}
		wg.Wait()
	}
	end()
}

// Whichever side closes first, and however late the other: their lanes serve
// again, unless something was under way.
func TestSimPoolOrdersOfClosing(t *testing.T) {
	a, b, end := leftover(t, map[string]string{"WEFT_TIMEOUT": "10"}) // the pool gives up what is closed on one side for so long
	for name, close := range map[string]func(s, r *Comm){
		"sender first":            func(s, r *Comm) { s.Close(); time.Sleep(10 * time.Millisecond); r.Close() },
		"receiver first":          func(s, r *Comm) { r.Close(); time.Sleep(10 * time.Millisecond); s.Close() },
		"long after the sender":   func(s, r *Comm) { s.Close(); time.Sleep(3 * lookEvery / 2); r.Close() },
		"long after the receiver": func(s, r *Comm) { r.Close(); time.Sleep(3 * lookEvery / 2); s.Close() },
		"at once":                 func(s, r *Comm) { go s.Close(); r.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			s, r := pair(t, a, b)
			if !reused(t, s, r) {
				t.Fatalf("%q %q", a.log.Lines(), b.log.Lines())
			}
			move(t, s, r, 1000)
			close(s, r)
			eventually(t, "both keep them", func() bool { return a.parked() == 1 && b.parked() == 1 })
		})
	}
	end()
}

// What did not end well is not kept.
func TestSimPoolOnlyOfGoodEnds(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, s, r *Comm){
		"a receive outstanding": func(t *testing.T, s, r *Comm) { awaiting(t, r, 4096); r.Close(); s.Close() },
		"a send outstanding": func(t *testing.T, s, r *Comm) {
			awaiting(t, r, 100)
			out := send(s, register(t, s, buffer(t, 100), 100))
			eventually(t, "it is posted", func() bool { out.step(); return out.req != 0 })
			s.Close()
			r.Close()
		},
		"failed here":  func(t *testing.T, s, r *Comm) { s.Fail(errAbandoned); s.Close(); r.Close() },
		"failed there": func(t *testing.T, s, r *Comm) { r.Fail(errAbandoned); s.Close(); r.Close() },
		"fenced": func(t *testing.T, s, r *Comm) {
			s.Carrier().(carrier.OneSided).Spoil()
			s.Carrier().(carrier.OneSided).Fence()
			s.Close()
			r.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, end := keptPair(t, with(lanes4, "WEFT_LAZY", "demand"))
			before := objects(t)
			s, r := pair(t, a, b)
			move(t, s, r, 1000)
			spoil(t, s, r)
			over(t, s, r)
			if a.parked()+b.parked() == 2 {
				t.Errorf("both do")
			}
			s, r = pair(t, a, b)
			if !overVerbs(s) || reused(t, s, r) {
				t.Errorf("%q", a.log.Lines())
			}
			move(t, s, r, 1000)
			s.Close()
			r.Close()
			eventually(t, "nothing is left of it", func() bool {
				a.pool.Empty()
				b.pool.Empty()
				now := objects(t)
				return now.QPs == before.QPs && now.CQs == before.CQs
			})
			end()
		})
	}
}
