package transport

import (
	"fmt"
	"testing"

	"weft/internal/hostcalls"
	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/lanes"
	"weft/transport/rdma"
	"weft/transport/wire"
)

// lying changes the offers of a connection's queue pairs that reach the listening side.
type lying struct {
	carrier.Asking
	change func(m *wire.Offer)
}

func (l *lying) Reply(a *carrier.Arrival, frame []byte) (*carrier.Made, error) {
	if m, err := wire.ParseOffer(frame); err == nil && m.Flags&wire.FlagReuse != 0 {
		l.change(&m)
		frame = m.Append(nil)
	}
	return l.Asking.Reply(a, frame)
}

// What cannot serve again is found before it is used, and the connection has new
// queue pairs; nothing of the old ones is left.
func TestSimPoolWhatDoesNotServe(t *testing.T) {
	says := func(format string, a ...any) func(*testing.T, *process, *process) {
		return func(t *testing.T, _, _ *process) { command(t, fmt.Sprintf(format, a...)) }
	}
	lies := func(change func(a *process, m *wire.Offer)) func(*testing.T, *process, *process) {
		return func(_ *testing.T, a, b *process) {
			b.ways[0] = &lying{b.ways[0].(carrier.Asking), func(m *wire.Offer) { change(a, m) }}
		}
	}
	for name, spoil := range map[string]func(t *testing.T, a, b *process){
		"the other side has none":   func(t *testing.T, _, b *process) { b.pool.Empty() },
		"a lane that broke here":    func(t *testing.T, a, _ *process) { command(t, fmt.Sprintf("break simA %d", a.parted.lanes[1][0])) },
		"a lane that broke there":   func(t *testing.T, _, b *process) { command(t, fmt.Sprintf("break simB %d", b.parted.lanes[3][0])) },
		"a broken flush queue pair": func(t *testing.T, _, b *process) { command(t, fmt.Sprintf("break simB %d", b.parted.loop)) },
		"a request that fails":      says("error simA 2 RETRY_EXC_ERR"),
		"one that fails there":      says("error simB 3 REM_OP_ERR"),
		"a post that fails":         says("fail post_send 6 EIO"),
		"one that fails there ":     says("fail post_send 2 EIO"),
		"a receive that is missing": says("fail post_recv 1 ENOMEM"),
		"memory for the ring":       says("fail reg_mr 1"),
		"memory for the ring there": says("fail reg_mr 2"),
		"other queue pairs":         lies(func(_ *process, m *wire.Offer) { m.Lanes[0], m.Lanes[1] = m.Lanes[1], m.Lanes[0] }),
		"a new queue pair":          lies(func(_ *process, m *wire.Offer) { m.Lanes[3].QPN++ }),
		"another comm":              lies(func(_ *process, m *wire.Offer) { m.Comm++ }),
		"an open comm":              lies(func(a *process, m *wire.Offer) { m.Comm = a.anyComm().Member().ID }),
		"another session":           lies(func(_ *process, m *wire.Offer) { m.Session++ }),
		"fewer lanes":               lies(func(_ *process, m *wire.Offer) { m.Lanes = m.Lanes[:3] }),
	} {
		t.Run(name, func(t *testing.T) {
			a, b, end := leftover(t, with(lanes4, "WEFT_FLUSH", "always"))
			before := objects(t)
			spoil(t, a, b)
			s, r := pair(t, a, b)
			if !overVerbs(s) || !overVerbs(r) || reused(t, s, r) {
				t.Fatalf("%q %q", a.log.Lines(), b.log.Lines())
			}
			if n := a.log.Count("INFO NET simA -> simB", "new QPs, not an earlier connection's"); n != 1 {
				t.Errorf("said %d times: %q", n, a.log.Lines())
			}
			complete(t, b, s, r)
			for _, size := range []int{1, 100_000, 1 << 20} {
				move(t, s, r, size)
			}
			part(t, a, b, s, r)
			eventually(t, "nothing is left of it", func() bool {
				it := a.kept().Comm()
				b.pool.Forget(func(k *lanes.Kit) bool { return k.Comm() != it })
				now := objects(t)
				return now.QPs == before.QPs && now.CQs == before.CQs && now.MRs == before.MRs
			})
			end()
		})
	}
}

// anyComm is a comm that the host has.
func (p *process) anyComm() *Comm {
	p.ctx.owned.Lock()
	defer p.ctx.owned.Unlock()
	for c := range p.ctx.owned.comms {
		return c
	}
	return nil
}

// A path that is cut is found by the lanes' proof, and TCP takes over.
func TestSimPoolPathIsCut(t *testing.T) {
	a, b, end := leftover(t, nil)
	command(t, "blackhole simB both")
	s, r := pair(t, a, b)
	command(t, "blackhole simB off")
	if overVerbs(s) || a.log.Count("INFO", "no acknowledgement of a write of 256 bytes") == 0 {
		t.Errorf("%q", a.log.Lines())
	}
	move(t, s, r, 100_000)
	s.Close()
	r.Close()
	end()
}

// Connections that want something else do not get it.
func TestSimPoolServesItsLike(t *testing.T) {
	a, b, end := leftover(t, nil)
	like := func(want bool, what string) {
		t.Helper()
		s, r := pair(t, a, b)
		complete(t, b, s, r)
		if got := reused(t, s, r); got != want {
			t.Errorf("%s: %v", what, got)
		}
		part(t, a, b, s, r)
		if !want {
			a.pool.Forget(func(k *lanes.Kit) bool { return k.Comm() == s.Member().ID })
			b.pool.Forget(func(k *lanes.Kit) bool { return k.Comm() == s.Member().ID })
		}
	}
	like(true, "the same")
	own := a.ctx
	a.ctx = a.NewContext(ContextOptions{Table: aTable, TrafficClass: 8})
	like(false, "another service level")
	a.ctx.Close()
	a.ctx = a.NewContext(ContextOptions{Table: aTable, TrafficClass: -1})
	like(true, "another context")
	a.ctx.hint(rdma.Attr{Proto: rdma.ProtoLL})
	like(false, "small messages")
	a.ctx.Close()
	a.ctx = own
	b.ctx.hint(rdma.Attr{Proto: rdma.ProtoLL})
	s, r := pair(t, a, b) // which this side does not know before the other refuses
	if reused(t, s, r) {
		t.Error("small messages there")
	}
	s.Close()
	r.Close()
	end()
}

// Memory may come and go in between: a connection has what is registered when it
// is made.
func TestSimPoolMemoryInBetween(t *testing.T) {
	a, b, end := leftover(t, nil)
	s, r := pair(t, a, b)
	src, dst := buffer(t, 50_000), buffer(t, 50_000)
	from, to := register(t, s, src, 0).Handle, register(t, r, dst, 0).Handle
	exchange(t, s, r, src, dst, from, to)
	part(t, a, b, s, r)
	other := buffer(t, 50_000)
	s, r = pair(t, a, b)
	if !reused(t, s, r) {
		t.Errorf("%q", a.log.Lines())
	}
	exchange(t, s, r, src, dst, from, to)
	if err := r.DeregMr(to); err != nil {
		t.Fatal(err)
	}
	exchange(t, s, r, src, other, from, register(t, r, other, 0).Handle)
	in := recv(r, hostcalls.Buf{Addr: addrOf(dst), Size: 100, Handle: to})
	in.step()
	if code := until(t, "a receive into what is gone", in); code != testCode(&report.Error{Cause: report.Misuse}, 0) {
		t.Errorf("code %d", code)
	}
	s.Close()
	r.Close()
	end()
}

// A connection of fused devices leaves the lanes of all of them.
func TestSimPoolOfFusedDevices(t *testing.T) {
	env := with(lanes4, "NCCL_IB_QPS_PER_CONNECTION", "2")
	a, b := startSim(t, "=simA,simC", env), startSim(t, "=simB,simD", env)
	keeper, other := pair(t, a, b)
	a.fusedWith(t, 0, 1)
	b.fusedWith(t, 0, 1)
	s, r := pair(t, a, b)
	complete(t, b, s, r)
	for range 10 {
		if used := lanesOf(t, s, r, 1<<20); used != 4 {
			t.Errorf("%d lanes", used)
		}
		part(t, a, b, s, r)
		s, r = pair(t, a, b)
		if !reused(t, s, r) || len(posted(s)) != 4 || len(portsOf(s)) != 2 {
			t.Fatalf("%q", a.log.Lines())
		}
	}
	part(t, a, b, s, r)
	a.dev, b.dev = 0, 0
	s, r = pair(t, a, b)
	if reused(t, s, r) {
		t.Error("one port has the lanes of two")
	}
	complete(t, b, s, r)
	part(t, a, b, s, r)
	a.dev, b.dev = 2, 2
	command(t, "link simC down")
	eventually(t, "it is heard", func() bool { return a.devices.Found()[1].Verbs.Down() != "" })
	s, r = pair(t, a, b)
	command(t, "link simC up")
	if reused(t, s, r) {
		t.Error("the lanes of a port that is down")
	}
	move(t, s, r, 100_000)
	noneLeft(t, s, r, keeper, other)
}

// Lanes that were never needed come to the connection that has the first ones
// again.
func TestSimPoolOfFirstLanes(t *testing.T) {
	a, b, s, r := simPair(t, with(lanes4, "WEFT_LAZY", "demand"))
	keeper, other := pair(t, a, b)
	move(t, s, r, 100)
	part(t, a, b, s, r)
	s, r = pair(t, a, b)
	if !reused(t, s, r) || len(posted(s)) != 1 {
		t.Errorf("%q", a.log.Lines())
	}
	move(t, s, r, 100_000)
	grown(t, s, r, 4)
	if used := lanesOf(t, s, r, 100_000); used != 4 {
		t.Errorf("%d lanes", used)
	}
	part(t, a, b, s, r)
	s, r = pair(t, a, b)
	if !reused(t, s, r) || len(posted(s)) != 4 || lanesOf(t, s, r, 100_000) != 4 {
		t.Errorf("%q", a.log.Lines())
	}
	noneLeft(t, s, r, keeper, other)
}
