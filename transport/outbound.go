package transport

import (
	"context"
	"fmt"
	"time"

	"weft/transport/carrier"
	"weft/transport/fastpath"
	"weft/transport/rendezvous"
	"weft/transport/session"
	"weft/transport/wire"
)

// complete takes the winner from frame 2 to a comm that is ready.
func (d *dial) complete(ctx context.Context, w *rendezvous.Won) (*ready, error) {
	w.Conn.SetDeadline(time.Now().Add(d.ctx.timeout))
	uncut := rendezvous.CutOnCancel(ctx, w.Conn)
	c, err := d.outbound(ctx, w)
	uncut()
	if err != nil {
		w.Conn.Close()
		return nil, d.classify(err, w)
	}
	return c, nil
}

// outbound takes a won race to a comm that is ready: hello, session, streams, attach.
// It then holds the session.
func (d *dial) outbound(ctx context.Context, w *rendezvous.Won) (*ready, error) {
	peer, wants, err := d.agree(w)
	if err != nil {
		return nil, err
	}
	s, err := d.ctx.sessions.Get(ctx, peer.Process, func() (*session.Session, error) {
		return d.ctx.openSession(ctx, &d.handle, w.Path, d.dev, d.trafficClass)
	})
	if err != nil {
		return nil, err
	}
	c, err := d.carried(ctx, &carrier.Call{For: d.ctx.comm(d.dev, fastpath.Send, rendezvous.EndName(peer, w.Conn), d.trafficClass),
		Session: s, Handle: &d.handle, Won: w, Wants: *wants})
	if err != nil {
		s.Release()
		return nil, err
	}
	return c, nil
}

// carried has the first of the ways that serves carry the comm.
func (d *dial) carried(ctx context.Context, c *carrier.Call) (*ready, error) {
	var m *carrier.Made
	for _, way := range d.ctx.ways {
		var err error
		if m, err = way.Connect(ctx, c); err != nil {
			return nil, err
		}
		if m != nil {
			break
		}
	}
	r := &ready{session: c.Session, won: c.Won, peer: c.Peer, Made: m, last: c.Go}
	if err := r.attach(d.ctx.nextComm.Add(1)); err != nil {
		r.Drop()
		return nil, err
	}
	if ctx.Err() != nil {
		r.leave(context.Cause(ctx).Error())
		return nil, context.Cause(ctx)
	}
	return r, nil
}

// agree reads the listening side's hello, which answers ours, and what it wants.
func (d *dial) agree(w *rendezvous.Won) (*wire.Hello, *wire.Lanes, error) {
	peer, to, err := d.greeted(w)
	if err = w.Judge(err); err != nil {
		return nil, nil, err
	}
	d.ctx.net.Narrow.Passed(w.Path, w.Conn, d.dev.Name, func() string { return rendezvous.EndName(peer, w.Conn) }, d.ctx.opts.Log)
	return peer, to, nil
}

func (d *dial) greeted(w *rendezvous.Won) (*wire.Hello, *wire.Lanes, error) {
	mine := d.ctx.hello(d.dev)
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
	if rd.Buffered() != 0 {
		return nil, nil, fmt.Errorf("%d bytes behind lanes: %w", rd.Buffered(), wire.ErrMalformed)
	}
	return peer, &m, nil
}
