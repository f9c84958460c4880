package fastpath_test

import (
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"weft/internal/hostcalls"
	"weft/transport/fastpath"
	"weft/transport/verbs"
	"weft/transport/verbs/gid"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/mr"
	"weft/transport/verbs/port"
	"weft/transport/verbs/qp"
)

// laneConfig is how a test's connection is made.
type laneConfig struct {
	lanes, width       int
	stripeMin, above   uint32
	depth, inline      int
	most               uint32 // bytes of one work request
	flush, flushAlways bool
	size               int  // of either side's memory; 0: 4 MiB
	hideInline         bool // tell the lanes that nothing fits inline
}

// laneSide is one end: devices simA and simB, or the other way round.
type laneSide struct {
	comm    *fastpath.Comm
	handle  uintptr
	mr      uintptr
	mem     []byte
	pds     [2]*mr.PD
	cqs     [2]*qp.CQ
	qps     []*qp.QP
	on      []*port.Device // by queue pair
	flushes []*qp.QP
	regions []*mr.Region
	plan    fastpath.VerbsPlan
}

func (s *laneSide) buf(off, size int, tag int32) hostcalls.Buf {
	return hostcalls.Buf{Addr: uintptr(unsafe.Pointer(&s.mem[off])), Size: uint64(size), Tag: tag, Handle: s.mr}
}

// ring is what the peer writes into, as the peer writes it: behind the lanes' back.
func (s *laneSide) ring() []byte {
	addr, size := s.comm.Shared()
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), size)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// laneEnds makes a send comm and a receive comm over queue pairs, before they are connected.
func laneEnds(t *testing.T, p *verbs.Provider, c laneConfig) (tx, rx *laneSide) {
	t.Helper()
	runtime.LockOSThread() // faults are kept per thread
	t.Cleanup(runtime.UnlockOSThread)
	const device = 300
	var sides [2]*laneSide
	for i, kind := range []fastpath.Kind{fastpath.Send, fastpath.Recv} {
		s := &laneSide{comm: must(fastpath.New(fastpath.Options{Kind: kind, Device: device, Cookie: uint64(i)}))}
		sides[i] = s
		if c.size == 0 {
			c.size = 4 << 20
		}
		s.mem = must(unix.Mmap(-1, 0, c.size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON))
		m := fastpath.MR{Device: device, Addr: uintptr(unsafe.Pointer(&s.mem[0])), Base: uintptr(unsafe.Pointer(&s.mem[0])), Length: uint64(c.size), Kind: 1}
		addr, size := s.comm.Shared()
		for d := range 2 {
			pd := must(p.Devices()[(d+i)%2].AcquirePD())
			s.pds[d], s.cqs[d] = pd, must(qp.NewCQ(pd, 4096))
			shared := must(pd.Register(hostMemory(t, addr, size), ibv.AccessCTS))
			data := must(pd.Register(hostMemory(t, m.Addr, m.Length), ibv.AccessData))
			s.regions = append(s.regions, shared, data)
			m.Keys = append(m.Keys, fastpath.Keys{LKey: data.LKey, RKey: data.RKey})
			s.plan.Keys = append(s.plan.Keys, fastpath.Keys{LKey: shared.LKey, RKey: shared.RKey})
			if c.flush {
				on := p.Devices()[(d+i)%2]
				q := must(qp.New(on, pd, qp.Config{SendCQ: s.cqs[d], RecvCQ: s.cqs[d], SendDepth: 2, RecvDepth: 1, Access: ibv.RemoteRead}))
				gid := on.GIDs()[0]
				if err := q.Connect(t.Context(), qp.Path{GID: gid, Peer: q.Local(gid)}); err != nil {
					t.Fatal(err)
				}
				s.flushes = append(s.flushes, q)
				s.plan.Flush = append(s.plan.Flush, fastpath.VerbsFlush{Needed: true, QP: q.Pointer(), CQ: s.cqs[d].Pointer(), Depth: q.SendDepth})
			}
		}
		s.mr = must(fastpath.RegisterMR(m))
		for l := range c.lanes {
			d := l % 2
			on := p.Devices()[(d+i)%2]
			q := must(qp.New(on, s.pds[d], qp.Config{SendCQ: s.cqs[d], RecvCQ: s.cqs[d], SendDepth: c.depth, RecvDepth: 256, Inline: c.inline}))
			inline := q.Inline
			if c.hideInline {
				inline = 0
			}
			s.qps, s.on = append(s.qps, q), append(s.on, on)
			s.plan.Lanes = append(s.plan.Lanes, fastpath.VerbsLane{QP: q.Pointer(), CQ: s.cqs[d].Pointer(), Device: d, PeerDevice: d,
				SendDepth: min(q.SendDepth, c.depth), RecvDepth: q.RecvDepth, Inline: inline, MaxMessage: c.most})
		}
		s.plan.Width, s.plan.StripeMin, s.plan.ARThreshold, s.plan.FlushAlways = c.width, c.stripeMin, c.above, c.flushAlways
	}
	tx, rx = sides[0], sides[1]
	t.Cleanup(func() {
		for _, s := range sides {
			_ = s.comm.Close()
			for _, q := range append(s.qps, s.flushes...) {
				if err := q.Close(); err != nil {
					t.Error(err)
				}
			}
			fastpath.DetachVerbs(s.comm)
			if _, err := fastpath.DeregisterMR(s.mr, 1); err != nil {
				t.Error(err)
			}
			for _, r := range s.regions {
				_ = r.Release()
			}
			for d := range 2 {
				_, _ = s.cqs[d].Close(), s.pds[d].Release()
			}
			s.comm.Free()
			_ = unix.Munmap(s.mem)
		}
	})
	return tx, rx
}

// learn takes into the plan what the handshake brings of the other side.
func (s *laneSide) learn(other *laneSide) {
	addr, _ := other.comm.Shared()
	s.plan.Peer = uint64(addr)
	for _, k := range other.plan.Keys {
		s.plan.PeerKeys = append(s.plan.PeerKeys, k.RKey)
	}
}

// laneConnected connects them too.
func laneConnected(t *testing.T, p *verbs.Provider, c laneConfig) (tx, rx *laneSide) {
	t.Helper()
	tx, rx = laneEnds(t, p, c)
	laneJoin(t, tx, rx)
	return tx, rx
}

// laneJoin connects two ends.
func laneJoin(t *testing.T, tx, rx *laneSide) {
	t.Helper()
	for i, s := range []*laneSide{tx, rx} {
		other := []*laneSide{rx, tx}[i]
		s.learn(other)
		if err := fastpath.AttachVerbs(s.comm, &s.plan); err != nil {
			t.Fatal(err)
		}
	}
	for i := range tx.qps {
		for j, s := range []*laneSide{tx, rx} {
			other := []*laneSide{rx, tx}[j]
			l, r, _ := gid.Pair(s.on[i].GIDs(), other.on[i].GIDs())
			if err := s.qps[i].Connect(t.Context(), qp.Path{GID: l, Peer: other.qps[i].Local(r)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	tx.handle, rx.handle = tx.comm.Open(), rx.comm.Open()
}
