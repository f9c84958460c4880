package transport

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"weft/internal/report"
	"weft/transport/lanes"
	"weft/transport/session"
	"weft/transport/wire"
)

// lanes4 are comms of four lanes, all of which carry every message once they are there.
var lanes4 = map[string]string{"NCCL_IB_QPS_PER_CONNECTION": "4", "NCCL_IB_SPLIT_DATA_ON_QPS": "1", "WEFT_STRIPE_MIN": "4096"}

func with(env map[string]string, name, value string) map[string]string {
	env = maps.Clone(env)
	env[name] = value
	return env
}

// grown waits until a comm has n lanes on both sides.
func grown(t testing.TB, s, r *Comm, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d lanes on both sides", n), func() bool { return len(posted(s)) == n && len(posted(r)) == n })
}

// lanesOf counts the lanes that a message takes.
func lanesOf(t *testing.T, s, r *Comm, size int) (used int) {
	t.Helper()
	before := posted(s)
	move(t, s, r, size)
	for i, n := range posted(s) {
		if i >= len(before) || n != before[i] {
			used++
		}
	}
	return used
}

// Further lanes come by themselves, soon or when they are needed, and carry data.
func TestSimFurtherLanes(t *testing.T) {
	for mode, first := range map[string]int{"background": 1, "demand": 1, "off": 4} {
		t.Run(mode, func(t *testing.T) {
			a, _, s, r := simPair(t, with(lanes4, "WEFT_LAZY", mode))
			v := s.Carrier().(*lanes.Carrier)
			said := "4 lanes (QPs"
			if first == 1 {
				said = "1 lane and 3 later (QPs"
			}
			if a.log.Count("INFO", said) != 1 || len(v.PairAt) != 4 {
				t.Errorf("%q", a.log.Lines())
			}
			if mode == "demand" {
				move(t, s, r, 4096)
				for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) { // time to be wrong in
					if len(posted(s)) != 1 {
						t.Fatal("no more than WEFT_STRIPE_MIN has passed")
					}
				}
				move(t, s, r, 1)
			}
			grown(t, s, r, 4)
			for _, size := range []int{100_001, 4097, 1 << 20} {
				if used := lanesOf(t, s, r, size); used != 4 {
					t.Errorf("%d bytes on %d lanes", size, used)
				}
			}
			if used := lanesOf(t, s, r, 4096); used != 1 {
				t.Errorf("a small message on %d lanes", used)
			}
			if n := a.log.Count("INFO", "has 4 lanes now (QPs "); n != map[bool]int{true: 1}[first == 1] || a.log.Count("INFO", "(QPs )") != 0 {
				t.Errorf("%q", a.log.Lines())
			}
			noneLeft(t, s, r)
		})
	}
}

// They come while messages are under way, whose bytes stay whole.
func TestSimFurtherLanesUnderLoad(t *testing.T) {
	_, _, s, r := simPair(t, with(lanes4, "WEFT_LAZY", "demand"))
	eventually(t, "four lanes", func() bool {
		for _, size := range []int{1, 4097, 70_001, 300_000} {
			move(t, s, r, size)
		}
		return len(posted(s)) == 4
	})
	if used := lanesOf(t, s, r, 100_001); used != 4 {
		t.Errorf("on %d lanes", used)
	}
	noneLeft(t, s, r)
}

// halted keeps a session's comms, of which s is one, from growing until release.
func halted(t *testing.T, s *Comm) (release func()) {
	t.Helper()
	wait := make(chan struct{})
	s.Member().Session.Background.Led.Add(report.Discard{}, func() { <-wait })
	release = sync.OnceFunc(func() { close(wait) })
	t.Cleanup(release)
	return release
}

// wanting has a comm want further lanes, which it has on demand, and keeps it from them until grow.
func wanting(t *testing.T, s, r *Comm) (grow func()) {
	t.Helper()
	grow = halted(t, s)
	move(t, s, r, 5000)
	return grow
}

// growing has a comm that has further lanes on demand begin to make them now, so that what follows meets it.
func growing(t *testing.T, s, r *Comm) {
	t.Helper()
	grow := wanting(t, s, r)
	time.Sleep(60 * time.Millisecond) // the watch looks every 50 ms, and finds that they are wanted
	grow()
}

// Whatever fails on the way, the comm goes on with the lanes that it has.
func TestSimFurtherLanesThatCannotBe(t *testing.T) {
	// Calls are numbered: the probe is there before, and no queue pair for flushes comes between.
	a, b := startSim(t, "=simA", with(lanes4, "WEFT_LAZY", "demand")), startSim(t, "=simB", map[string]string{"WEFT_FLUSH": "never"})
	keeper, other := pair(t, a, b)
	probed(t, a, b)
	// Calls of either side in turn: three lanes here, three there, where they are connected.
	for _, f := range []struct {
		function string
		nth      []int
	}{
		{"create_qp", []int{1, 3, 4, 6}}, {"modify_qp", []int{1, 4, 7, 8, 12, 13, 18}}, {"query_ece", []int{1, 2, 3}}, {"post_recv", []int{1, 20}},
	} {
		for _, n := range f.nth {
			t.Run(fmt.Sprintf("%s %d", f.function, n), func(t *testing.T) {
				s, r := pair(t, a, b)
				grow := wanting(t, s, r)
				said := a.log.Count("INFO", "goes on with 1 of 4 lanes")
				command(t, fmt.Sprintf("fail %s %d EIO", f.function, n))
				grow()
				eventually(t, "it is said", func() bool {
					if len(posted(s)) == 4 {
						t.Fatalf("something else took the failure: %q %q", a.log.Lines(), b.log.Lines())
					}
					return a.log.Count("INFO", "goes on with 1 of 4 lanes") == said+1
				})
				for _, size := range []int{10, 5000, 1 << 20} {
					move(t, s, r, size)
				}
				if len(posted(s)) != 1 {
					t.Errorf("%d lanes", len(posted(s)))
				}
				s.Close()
				r.Close()
			})
		}
	}
	noneLeft(t, keeper, other)
}

// A comm that ends while lanes are added leaves nothing.
func TestSimFurtherLanesOfAnEnd(t *testing.T) {
	a, b := startSim(t, "=simA", with(lanes4, "WEFT_LAZY", "demand")), startSim(t, "=simB", nil)
	ends := []func(s, r *Comm){
		func(s, r *Comm) { s.Close(); r.Close() },
		func(s, r *Comm) { r.Close(); s.Close() },
		func(s, r *Comm) { s.Fail(errAbandoned); s.Close(); r.Close() },
		func(s, r *Comm) { r.Fail(errAbandoned); s.Close(); r.Close() },
		func(s, r *Comm) { s.Member().Session.Conn.Close(); s.Close(); r.Close() },
	}
	for i := range 40 {
		s, r := pair(t, a, b)
		growing(t, s, r)
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
		ends[i%len(ends)](s, r)
	}
	noQPLeft(t, a, b)
}

// offering stands between two processes in what they say of further lanes: neither hears the other, and what the
// connecting side has offered is spoiled.
type offering struct {
	t      *testing.T
	a, b   *process
	r      *Comm
	keys   []uint32
	offers chan *wire.Further
	answer chan *wire.FurtherAnswer
	joined chan *wire.Joined
}

// between is that for two processes that have said nothing yet.
func between(t *testing.T, a, b *process) *offering {
	o := &offering{t: t, a: a, b: b, offers: make(chan *wire.Further, 1), answer: make(chan *wire.FurtherAnswer, 1), joined: make(chan *wire.Joined, 1)}
	overhear(b, wire.KindFurther, wire.ParseFurther, o.offers)
	overhear(a, wire.KindFurtherAnswer, wire.ParseFurtherAnswer, o.answer)
	overhear(a, wire.KindJoined, wire.ParseJoined, o.joined)
	return o
}

// overhear has messages of a kind go elsewhere than to p.
func overhear[M any](p *process, kind wire.Kind, parse func([]byte) (M, error), to chan *M) {
	p.serve[kind] = func(_ *session.Session, frame []byte) error {
		m, err := parse(frame)
		if err == nil {
			to <- &m
		}
		return err
	}
}

// honest is what the connecting side offers once a comm wants more lanes.
func (o *offering) honest(s, r *Comm) []wire.QPEnd {
	o.t.Helper()
	move(o.t, s, r, 5000)
	m := heard(o.t, o.offers)
	o.r, o.keys = r, m.Keys
	return m.Lanes
}

// heard is the next message.
func heard[M any](t *testing.T, from chan *M) *M {
	t.Helper()
	select {
	case m := <-from:
		return m
	case <-time.After(testLimit):
		t.Fatal("no message")
		return nil
	}
}

// says has the listening side hear a message.
func (o *offering) says(m session.Frame) {
	o.t.Helper()
	if err := o.b.lanes.Serve(o.r.Member().Session, m.Append(nil)); err != nil {
		o.t.Error(err)
	}
}

func (o *offering) offer(lanes []wire.QPEnd) *wire.FurtherAnswer {
	o.t.Helper()
	o.says(&wire.Further{Header: o.r.Member().Header(), Keys: o.keys, Lanes: lanes})
	return heard(o.t, o.answer)
}

func (o *offering) join(pairs uint32) *wire.Joined {
	o.t.Helper()
	o.says(&wire.Join{Header: o.r.Member().Header(), Pairs: pairs})
	return heard(o.t, o.joined)
}

// judged offers lanes, which are to be taken, if they are good, or refused as a
// whole; joins pairs of which some were not offered; and uses the comm, which goes
// on with what it had.
func (o *offering) judged(s, r *Comm, lanes []wire.QPEnd, good bool, pairs uint32) {
	t := o.t
	t.Helper()
	want := 0
	if good {
		want = len(lanes)
	}
	if m := o.offer(lanes); (m.Reason == "") != good || len(m.Lanes) != want {
		t.Errorf("%+v", m)
	}
	if good {
		if m := o.join(pairs); m.Pairs != 0 || m.Reason == "" {
			t.Errorf("pairs that were not offered are joined: %+v", m)
		}
	}
	if again := o.offer(lanes); again.Reason == "" {
		t.Error("it may offer twice")
	}
	for _, size := range []int{10, 5000, 1 << 20} {
		move(t, s, r, size)
	}
	if n := len(posted(r)); n != 1 {
		t.Errorf("%d lanes", n)
	}
	noneLeft(t, s, r)
}

// What a peer must not offer is refused, and the comm goes on.
func TestSimFurtherLanesRefused(t *testing.T) {
	for what, spoil := range map[string]func(o *offering, lanes []wire.QPEnd) []wire.QPEnd{
		"another device":   func(o *offering, l []wire.QPEnd) []wire.QPEnd { l[2].Device++; return l },
		"another slot":     func(o *offering, l []wire.QPEnd) []wire.QPEnd { o.keys = append(o.keys, 1); l[2].Slot++; return l },
		"another GID":      func(o *offering, l []wire.QPEnd) []wire.QPEnd { l[2].GID.Addr[15]++; return l },
		"another GID type": func(o *offering, l []wire.QPEnd) []wire.QPEnd { l[2].GID.Type = 0; return l },
		"another key":      func(o *offering, l []wire.QPEnd) []wire.QPEnd { o.keys = []uint32{o.keys[0] + 1}; return l },
		"two for three":    func(o *offering, l []wire.QPEnd) []wire.QPEnd { return l[:2] },
		"four for three":   func(o *offering, l []wire.QPEnd) []wire.QPEnd { return append(l, l[0]) },
		"nothing wrong":    nil,
	} {
		t.Run(what, func(t *testing.T) {
			env := with(lanes4, "WEFT_LAZY", "demand")
			a, b := startSim(t, "=simA", env), startSim(t, "=simB", env)
			o := between(t, a, b)
			s, r := pair(t, a, b)
			lanes := o.honest(s, r)
			if spoil != nil {
				lanes = spoil(o, lanes)
			}
			o.judged(s, r, lanes, spoil == nil, 1<<5)
		})
	}
}
