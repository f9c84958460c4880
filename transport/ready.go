package transport

import (
	"fmt"
	"time"

	"weft/transport/carrier"
	"weft/transport/comms"
	"weft/transport/fastpath"
	"weft/transport/rendezvous"
	"weft/transport/session"
	"weft/transport/wire"
)

// ready is a comm of the connecting side that lacks nothing but go, which is said
// when the host takes it. Until then the listening side keeps it from its host.
type ready struct {
	session *session.Session
	member  *session.Member
	won     *rendezvous.Won
	peer    string
	*carrier.Made
	last wire.Go
}

// attach binds the comm to its session, on both sides.
func (r *ready) attach(id uint64) error {
	if r.member = r.session.Join(id); r.member == nil {
		return fmt.Errorf("the control connection to %s ended meanwhile", r.session.Name)
	}
	m := wire.Attach{Header: wire.Header{Session: r.session.ID, Comm: r.member.ID}}
	m.Sign(r.won.Token, &r.won.F1, &r.won.F2)
	r.session.TellTogether(&m)
	r.last.Session, r.last.Comm = r.session.ID, r.member.ID
	return nil
}

// leave ends the comm, but for the session. The peer may have its comm, and over
// RDMA nothing else tells it.
func (r *ready) leave(why string) {
	r.session.TellLater(&wire.Failed{Header: r.member.Header(), Reason: why})
	r.session.Leave(r.member)
	r.Drop()
	r.won.Conn.Close()
}

// discard ends the comm, and lets go of the session.
func (r *ready) discard(why string) {
	r.leave(why)
	r.session.Release()
}

// launch says go and builds the comm: nothing in it waits for the peer.
func (r *ready) launch(d *dial) (*comms.Comm, error) {
	c, err := r.build(d)
	if err != nil {
		r.discard(err.Error())
		return nil, d.classify(err, r.won)
	}
	c.Attached(r.member)
	if d.ctx.taken(&r.last) != nil {
		r.won.Conn.Close()
	}
	if !own(d.ctx, d.ctx.owned.comms, c, struct{}{}) {
		c.Close()
		return nil, errFinalized("connect")
	}
	return c, nil
}

func (r *ready) build(d *dial) (*comms.Comm, error) {
	via := r.won.Path.Substitute(d.dev.TCP, r.won.Conn)
	r.won.Conn.SetDeadline(time.Now().Add(d.ctx.timeout))
	if err := r.won.Say(r.last.Append(nil)); err != nil {
		return nil, fmt.Errorf("sending go: %w", err)
	}
	return comms.New(&d.ctx.comms, d.dev, fastpath.Send, r.peer, via, r.By)
}
