package transport

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"weft/internal/knob"
	"weft/transport/fastpath"
	"weft/transport/rdma"
	"weft/transport/verbs"
	"weft/transport/wire"
)

const (
	laneDepth  = 256 // requests each way: a receiver's queue takes whatever its groups bring
	flushDepth = 32
	laneInline = 64       // one CTS line
	stripeMin  = 64 << 10 // a smaller group uses one lane
	proofLimit = time.Second
)

// verbsCarrier moves bytes through queue pairs that the executor posts to.
type verbsCarrier struct {
	ctx    *Context
	dev    *Device // as the host asked
	kind   fastpath.Kind
	peer   string
	pair   verbsPair
	cookie uint64
	fp     *fastpath.Comm

	pd     *verbs.PD
	shared *verbs.Buffer // ring and what is written from, in the slab
	ring   *verbs.Region
	cq     *verbs.CQ
	lanes  []*verbs.QP
	flush  *verbs.QP // loopback; nil: nothing that a flush must order
	always bool      // host memory is flushed too
	theirs uint64    // the peer's shared range, and its key
	key    uint32
	line   string // how it is connected

	stop   sync.Once // fence
	fenced atomic.Bool
	end    sync.Once // destroy
	life   sync.Mutex
	dead   bool // protected by life: destroyed
}

// openVerbs makes one side of a comm over pair: slab, registered ring,
// completion queue and queue pairs in INIT. When it fails nothing is left.
func openVerbs(x *Context, dev *Device, kind fastpath.Kind, peer string, pair verbsPair, lanes int) (*verbsCarrier, error) {
	v := &verbsCarrier{ctx: x, dev: dev, kind: kind, peer: peer, pair: pair, cookie: comms.reserve()}
	if err := v.make(lanes); err != nil {
		v.discard()
		return nil, err
	}
	return v, nil
}

func (v *verbsCarrier) make(lanes int) (err error) {
	v.fp, err = fastpath.New(fastpath.Options{Kind: v.kind, Device: v.device(), Cookie: v.cookie, Upcalls: upcalls()})
	if err != nil {
		return err
	}
	if v.pd, err = v.pair.local.AcquirePD(); err != nil {
		return err
	}
	addr, size := v.fp.Shared()
	if v.shared, err = verbs.NewBuffer(addr, size, rdma.MemHost); err != nil {
		return err
	}
	v.shared.Strict = true
	if v.ring, err = v.pd.Register(v.shared, verbs.AccessCTS); err != nil {
		return err
	}
	if err := v.queues(lanes); err != nil {
		return err
	}
	return v.loop()
}

// queues makes the queue pairs. Their completion queue must hold all that they
// can have posted, which is known once they are made: then it may have to grow.
func (v *verbsCarrier) queues(lanes int) error {
	sends, recvs := laneDepth, laneDepth
	if v.kind == fastpath.Send {
		recvs = 1 // nothing comes by its queue
	}
	flushes := v.flushes()
	need := lanes * (sends + recvs)
	if flushes {
		need += flushDepth + 1
	}
	for {
		var err error
		if v.cq, err = v.pd.NewCQ(need); err != nil {
			return err
		}
		c := verbs.QPConfig{SendCQ: v.cq, RecvCQ: v.cq, SendDepth: sends, RecvDepth: recvs, Inline: laneInline, Cookie: v.cookie}
		need = 0
		for range lanes {
			q, err := v.pair.local.NewQP(v.pd, c)
			if err != nil {
				return err
			}
			v.lanes = append(v.lanes, q)
			need += q.SendDepth + q.RecvDepth
		}
		if flushes {
			c.SendDepth, c.RecvDepth, c.Inline, c.Access = flushDepth, 1, 0, verbs.RemoteRead
			if v.flush, err = v.pair.local.NewQP(v.pd, c); err != nil {
				return err
			}
			need += v.flush.SendDepth + v.flush.RecvDepth
		}
		if need <= v.cq.Depth {
			return nil
		}
		if err := v.unqueue(); err != nil {
			return err
		}
	}
}

// flushes reports whether a receive may have to be flushed to be seen.
func (v *verbsCarrier) flushes() bool {
	mode := v.ctx.core.cfg.Knobs.Text(knob.Flush)
	if mode == "" && v.ctx.core.cfg.Knobs.Int(knob.GDRFlushDisable) != 0 {
		mode = "never"
	}
	v.always = mode == "always"
	kinds, _ := v.pair.local.GPUMemory()
	return v.kind == fastpath.Recv && mode != "never" && (v.always || kinds != 0)
}

// loop connects the flush queue pair with itself.
func (v *verbsCarrier) loop() error {
	if v.flush == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), v.ctx.core.timeout)
	defer cancel()
	return v.flush.Connect(ctx, verbs.Path{GID: v.pair.gid, Peer: v.flush.Local(v.pair.gid)})
}

// ends is this side as the peer must know it.
func (v *verbsCarrier) ends() (shared uint64, keys []uint32, lanes []wire.QPEnd) {
	for _, q := range v.lanes {
		e := q.Local(v.pair.gid)
		lanes = append(lanes, wire.QPEnd{Device: v.pair.localIndex, Peer: v.pair.peerIndex, QPN: e.QPN, PSN: e.PSN, LID: e.LID, MTU: e.MTU, GID: portGID(e.GID)})
	}
	return uint64(v.shared.Addr), []uint32{v.ring.RKey}, lanes
}

// connect gives the lanes to the executor, which fills their receive queues,
// and connects them with the peer's.
func (v *verbsCarrier) connect(ctx context.Context, shared uint64, keys []uint32, theirs []wire.QPEnd, sl, tc uint8) error {
	if len(theirs) != len(v.lanes) || len(keys) != 1 || shared == 0 {
		return rdma.Errorf(rdma.Peer, "connect", "the peer offers %d lanes and %d keys at %#x, %d lanes and 1 key are expected",
			len(theirs), len(keys), shared, len(v.lanes)).On(v.dev.Name).With(v.peer).Try("both hosts must run the same weft")
	}
	v.theirs, v.key = shared, keys[0]
	p := &fastpath.VerbsPlan{Width: 1, StripeMin: stripeMin, Keys: []fastpath.Keys{{LKey: v.ring.LKey, RKey: v.ring.RKey}},
		Peer: shared, PeerKeys: keys, FlushAlways: v.always}
	for _, q := range v.lanes {
		l := fastpath.VerbsLane{QP: q.Pointer(), CQ: v.cq.Pointer(), SendDepth: q.SendDepth, Inline: q.Inline, MaxMessage: v.pair.local.MaxMessage()}
		if v.kind == fastpath.Recv {
			l.RecvDepth = q.RecvDepth
		}
		p.Lanes = append(p.Lanes, l)
	}
	if v.flush != nil {
		p.Flush = []fastpath.VerbsFlush{{QP: v.flush.Pointer(), CQ: v.cq.Pointer(), Depth: v.flush.SendDepth}}
	}
	if err := fastpath.AttachVerbs(v.fp, p); err != nil {
		return rdma.Errorf(rdma.Host, "connect", "%w", err).On(v.dev.Name).With(v.peer)
	}
	for i, q := range v.lanes {
		t := &theirs[i]
		end := verbs.End{QPN: t.QPN, PSN: t.PSN, LID: t.LID, MTU: t.MTU, GID: verbsGID(t.GID)}
		if err := q.Connect(ctx, verbs.Path{GID: v.pair.gid, Peer: end, SL: sl, TC: tc}); err != nil {
			return fmt.Errorf("lane %d of %d: %w", i, len(v.lanes), err)
		}
	}
	v.line = fmt.Sprintf("GIDs %v and %v, %d lane%s, MTU %d, SL %d, TC %d, inline %d", v.pair.gid.Addr.Unmap(), v.pair.peerGID.Addr.Unmap(),
		len(v.lanes), plural(len(v.lanes)), v.pair.local.PathMTU(), sl, tc, v.lanes[0].Inline)
	return nil
}

// prove makes sure that lane 0 carries packets both ways.
func (v *verbsCarrier) prove(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, proofLimit, errors.New("none within "+proofLimit.String()))
	defer cancel()
	return v.lanes[0].Prove(ctx, v.cq, v.theirs, v.key)
}

// discard ends a carrier that no comm has.
func (v *verbsCarrier) discard() {
	if v.fp != nil {
		v.fp.Close()
	}
	v.destroy()
}
