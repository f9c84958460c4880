package transport

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"weft/transport/rendezvous"
	"weft/transport/session"
	"weft/transport/task"
	"weft/transport/tcp"
	"weft/transport/wire"
)

// outbound takes a won race to a comm that is ready: frame 3 and hello, session,
// streams, attach. It then holds the session.
func (k *connector) outbound(ctx context.Context, w *rendezvous.Won, o tcp.Options) (*ready, error) {
	peer, wants, err := k.agree(w)
	if err != nil {
		return nil, err
	}
	s, err := k.core.sessions.Get(ctx, peer.Process, func() (*session.Session, error) {
		return k.core.openSession(ctx, &k.handle, w.Path, k.dev, k.trafficClass)
	})
	if err != nil {
		return nil, err
	}
	c, err := k.carried(ctx, &dialogue{session: s, won: w, peer: rendezvous.EndName(peer, w.Conn), wants: wants, options: o})
	if err != nil {
		s.Release()
		return nil, err
	}
	return c, nil
}

// carried has the first of the ways that serves carry the comm.
func (k *connector) carried(ctx context.Context, d *dialogue) (*ready, error) {
	var m *made
	for _, way := range ways {
		var err error
		if m, err = way.connect(k, ctx, d); err != nil {
			return nil, err
		}
		if m != nil {
			break
		}
	}
	r := &ready{session: d.session, won: d.won, peer: d.peer, made: m, last: d.last}
	if err := r.attach(k.core.nextComm.Add(1)); err != nil {
		r.drop()
		return nil, err
	}
	if ctx.Err() != nil {
		r.leave(context.Cause(ctx).Error())
		return nil, context.Cause(ctx)
	}
	return r, nil
}

// wants is what the listening side has for the comm.
type wants struct {
	streams int
	ports   []uint16 // of its device, in its inventory
	noPorts string   // why there are none
	stash   uint32   // bytes that it keeps of messages ahead of their receives, over TCP
}

// agree exchanges hellos, in packets of full size, and reads what the listening
// side wants.
func (k *connector) agree(w *rendezvous.Won) (*wire.Hello, *wants, error) {
	pads, g := k.core.net.Fill(w.Conn, w.Path)
	peer, to, err := k.greet(w, pads)
	if err = g.Judge(w.Path, err); err != nil {
		return nil, nil, err
	}
	k.core.net.Narrow.Passed(w.Path, w.Conn, k.dev.Name, func() string { return rendezvous.EndName(peer, w.Conn) }, k.ctx.opts.Log)
	return peer, to, nil
}

func (k *connector) greet(w *rendezvous.Won, pads []byte) (*wire.Hello, *wants, error) {
	mine := k.core.hello(k.dev)
	if err := w.Confirm(mine.Append(pads)); err != nil {
		return nil, nil, err
	}
	rd := readers.Get().(*wire.Reader)
	rd.Reset(w.Conn)
	defer func() { rd.Reset(nil); readers.Put(rd) }()
	peer, err := w.ReadHello(rd, &mine)
	if err != nil {
		return nil, nil, err
	}
	frame, err := rd.Next()
	if err != nil {
		return nil, nil, fmt.Errorf("reading lanes: %w", err)
	}
	if wire.KindOf(frame) == wire.KindReject {
		return nil, nil, w.Rejected(peer, frame)
	}
	m, err := wire.ParseLanes(frame)
	if err != nil {
		return nil, nil, err
	}
	if m.Lanes[0].Kind != wire.LaneTCP || rd.Buffered() != 0 {
		return nil, nil, fmt.Errorf("%d lanes of kind %d, %d bytes more: %w", len(m.Lanes), m.Lanes[0].Kind, rd.Buffered(), wire.ErrMalformed)
	}
	to := &wants{streams: int(m.Lanes[0].Streams), noPorts: m.NoRDMA, stash: m.Stash}
	for _, l := range m.Lanes[1:] {
		if l.Kind != wire.LaneVerbs || len(to.ports) == wire.MaxSlots || slices.Contains(to.ports, l.Device) {
			return nil, nil, fmt.Errorf("a lane of kind %d on device %d after %d: %w", l.Kind, l.Device, len(to.ports), wire.ErrMalformed)
		}
		to.ports = append(to.ports, l.Device)
	}
	return peer, to, nil
}

// streams opens the further streams of a comm, all at once.
func (k *connector) streams(ctx context.Context, w *rendezvous.Won, n int, o tcp.Options) ([]*rendezvous.Conn, error) {
	conns := make([]*rendezvous.Conn, 1, n)
	conns[0] = w.Conn
	type opened struct {
		i   int
		w   *rendezvous.Won
		err error
	}
	results := make(chan opened, n)
	for i := 1; i < n; i++ {
		go func() {
			defer task.Rescue(k.core.cfg.Log, "connect", func(err error) { results <- opened{i, nil, err} })
			way := rendezvous.WayOf(k.dev.Interfaces(), &k.handle, i, w.Path)
			v, err := k.stream(ctx, w, way, i, o)
			if err != nil && way != w.Path {
				v, err = k.stream(ctx, w, w.Path, i, o)
			}
			results <- opened{i, v, err}
		}()
	}
	all := make([]*rendezvous.Conn, n)
	all[0] = w.Conn
	var failed error
	for i := 1; i < n; i++ {
		r := <-results
		if r.err != nil {
			failed = fmt.Errorf("opening stream %d of %d: %w", r.i, n, r.err)
			continue
		}
		all[r.i] = r.w.Conn
	}
	if failed == nil {
		return all, nil
	}
	for _, c := range all[1:] {
		if c != nil {
			conns = append(conns, c)
		}
	}
	return conns, failed
}

// stream opens stream i of w's comm along a way, with packets that pass there.
func (k *connector) stream(ctx context.Context, w *rendezvous.Won, way rendezvous.Path, i int, o tcp.Options) (*rendezvous.Won, error) {
	for {
		v, err := k.core.net.Attempt(ctx, &k.handle, way, wire.RoleStream, o, nil)
		if err != nil {
			return nil, err
		}
		pads, g := k.core.net.Fill(v.Conn, way)
		m := wire.Stream{Parent: w.F2.Nonce, Index: uint8(i)}
		err = v.Confirm(m.Append(pads))
		if err == nil {
			err = readTaken(v.Conn)
		}
		if err = g.Judge(way, err); err == nil {
			k.core.net.Narrow.Passed(way, v.Conn, k.dev.Name, func() string { return v.Conn.Remote().String() }, k.ctx.opts.Log)
			return v, nil
		}
		v.Conn.Close()
		if lost := (*rendezvous.NarrowError)(nil); !errors.As(err, &lost) || !k.core.net.Narrow.Smaller(lost) {
			return nil, err
		}
	}
}

func readTaken(c *rendezvous.Conn) error {
	frame, err := readFrame(c)
	if err == nil {
		_, err = wire.ParseTaken(frame)
	}
	if err != nil {
		return fmt.Errorf("waiting for taken: %w", err)
	}
	return nil
}
