package transport

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/fastpath"
	"weft/transport/rendezvous"
	"weft/transport/session"
	"weft/transport/task"
	"weft/transport/tcp"
	"weft/transport/wire"
)

// inbound is a comm that the passive side is setting up. It is complete when
// go has come, every stream has joined and the session carries it, in any
// order; whoever brings the last part finishes it.
type inbound struct {
	core     *Core
	listener *Listener
	f1       wire.Frame1
	f2       wire.Frame2 // its nonce names the comm: nobody else can choose it
	hello    wire.Hello  // the connecting process
	peer     string
	from     netip.Addr // of the connecting process
	deadline *time.Timer

	mu      sync.Mutex
	limit   time.Duration      // what deadline was set to last
	until   time.Time          // when that is over; protected by mu, as all below
	conns   []*rendezvous.Conn // by stream
	missing int                // parts still to come
	goMsg   wire.Go
	went    bool            // go has come: the peer has its comm
	member  *session.Member // set by attach
	made    *made           // set by a go that takes up an offer: there are no further streams
	over    bool            // finished or aborted
}

func newInbound(h *handshake, streams int) *inbound {
	in := &inbound{core: h.core, listener: h.listener, f1: h.f1, f2: h.f2, conns: make([]*rendezvous.Conn, streams)}
	in.missing = streams - 1 + 2 // streams after the first, attach, go
	in.conns[0], in.from = h.conn, h.conn.Remote().Addr()
	in.deadline = time.AfterFunc(time.Hour, func() { // register sets the true time
		defer task.Rescue(in.core.cfg.Log, "accept", task.Nobody)
		in.late()
	})
	in.deadline.Stop()
	return in
}

// register makes in known to streams and attach.
func (in *inbound) register() bool {
	in.peer = rendezvous.EndName(&in.hello, in.conns[0])
	in.core.inbound.Lock()
	in.core.inbound.byNonce[in.f2.Nonce] = in
	in.core.inbound.Unlock()
	in.mu.Lock()
	in.within(in.core.timeout)
	in.mu.Unlock()
	if !in.listener.begin(in) {
		in.forget()
		return false
	}
	return true
}

func (c *Core) findInbound(n wire.Nonce) *inbound {
	c.inbound.Lock()
	defer c.inbound.Unlock()
	return c.inbound.byNonce[n]
}

// join takes in stream index.
func (in *inbound) join(index int, c *rendezvous.Conn) error {
	in.mu.Lock()
	if in.over || in.made != nil || index >= len(in.conns) || in.conns[index] != nil {
		in.mu.Unlock()
		return fmt.Errorf("stream %d of %d, given twice, or too late", index, len(in.conns))
	}
	in.conns[index] = c
	if in.member != nil {
		c.Leaves()
	}
	in.part()
	return nil
}

// attach gives a new member to the comm that is being set up for it.
func (c *Core) attach(m *session.Member, a *wire.Attach) error {
	in := c.findInbound(a.Nonce)
	if in == nil {
		return errors.New("the listen knows no such comm: it was given up or closed")
	}
	return in.attach(m, a)
}

// attach binds in to the session that will carry it.
func (in *inbound) attach(m *session.Member, a *wire.Attach) error {
	if m.Session.Peer.Process != in.hello.Process || a.Session != m.Session.ID || !a.Verify(&in.listener.reach.Token, &in.f1, &in.f2) {
		return errors.New("the comm belongs to another process")
	}
	in.mu.Lock()
	if in.over || in.member != nil {
		in.mu.Unlock()
		return errors.New("the comm is attached already, or was given up")
	}
	in.member = m
	if !in.went {
		in.lingers()
	}
	in.part()
	return nil
}

// lingers has a comm that is attached wait for go for as long as the connecting
// side keeps it: its host may be slow to ask. in.mu is held.
func (in *inbound) lingers() {
	limit := 2*in.core.cfg.Knobs.Seconds(knob.ConnectTimeout) + in.core.timeout
	in.within(limit)
	for _, c := range in.conns {
		if c != nil {
			c.Leaves()
			c.SetDeadline(time.Now().Add(limit))
		}
	}
}

// patience gives a comm that tries one more way the full time for it.
func (in *inbound) patience() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.over && in.member == nil {
		in.within(in.core.timeout)
	}
}

// within sets the time that is left for what is missing. in.mu is held.
func (in *inbound) within(limit time.Duration) {
	in.limit, in.until = limit, time.Now().Add(limit)
	in.deadline.Reset(limit)
}

// late ends what has not come about in time. Behind go the peer takes the comm for
// connected: who accepts must hear that it will not come.
func (in *inbound) late() {
	in.mu.Lock()
	went, more, why := in.went, time.Now().Before(in.until), fmt.Errorf("the connection was not complete after %v", in.limit)
	in.mu.Unlock()
	switch {
	case more: // given while this call was on its way
		return
	case !went:
		in.abort(why)
		return
	}
	in.fail(report.Errorf(report.Peer, "accept", "%w", why).On(in.listener.dev.Name).With(in.peer).
		Try("its process has ended or is stopped, or one of the two hosts is overloaded; see WEFT_TIMEOUT"))
}

// goes takes in the connecting side's go, and what is to carry the comm; nil: streams.
func (in *inbound) goes(m wire.Go, c *rendezvous.Conn, by *made) {
	in.mu.Lock()
	if in.over {
		in.mu.Unlock()
		c.Close()
		if by != nil {
			by.drop()
		}
		return
	}
	in.goMsg, in.made, in.went = m, by, true
	in.within(in.core.timeout) // for the control connection, which others may use too
	if by != nil {
		for _, k := range in.conns[1:] {
			if k == nil {
				in.missing--
			}
		}
	}
	in.part()
}

// part counts one part; the last one finishes. Called with mu held, releases it.
func (in *inbound) part() {
	in.missing--
	last := in.missing == 0
	in.over = last
	in.mu.Unlock()
	if last {
		in.forget()
		in.finish()
	}
}

func (in *inbound) forget() {
	in.core.inbound.Lock()
	delete(in.core.inbound.byNonce, in.f2.Nonce)
	in.core.inbound.Unlock()
	in.deadline.Stop()
}

// abort gives up and closes every stream; why is logged unless nil.
func (in *inbound) abort(why error) { in.giveUp(arrival{}, why) }

// fail gives up and lets accept say why: the host must not wait for this one.
func (in *inbound) fail(why error) { in.giveUp(arrival{err: why}, nil) }

func (in *inbound) giveUp(last arrival, why error) {
	in.mu.Lock()
	if in.over {
		in.mu.Unlock()
		return
	}
	in.over = true
	conns, m, by := in.conns, in.member, in.made
	in.mu.Unlock()
	in.forget()
	in.listener.deliver(in, last)
	if by != nil {
		by.drop()
	}
	for _, c := range conns {
		if c != nil {
			c.Close()
		}
	}
	if m != nil { // the peer may have its comm, and over RDMA nothing else tells it
		reason := "the listen ended, or the handshake broke off"
		if err := cmp.Or(last.err, why); err != nil {
			reason = err.Error()
		}
		m.Session.TellLater(&wire.Failed{Header: m.Header(), Reason: reason})
		m.Session.Leave(m)
	}
	if why != nil && in.says() {
		in.listener.ctx.opts.Log.Info(report.Net, "%v",
			report.Errorf(report.Peer, "accept", "%w", why).On(in.listener.dev.Name).With(in.peer))
	}
}

// finish makes the comm and queues it for accept.
func (in *inbound) finish() {
	l := in.listener
	c, err := in.build()
	if err == nil && !l.deliver(in, arrival{comm: c}) {
		c.Close() // the listen was closed meanwhile
		return
	}
	if err == nil {
		return
	}
	lost := arrival{}
	if report.CauseOf(err) == report.Host { // the peer did its part: the host must not wait for this one
		lost.err = err
	}
	l.deliver(in, lost)
	in.drop()
	in.member.Session.Tell(&wire.Failed{Header: in.member.Header(), Reason: err.Error()})
	in.member.Session.Leave(in.member)
	if in.says() {
		report.Say(l.ctx.opts.Log, err)
	}
}

// says reports whether the comm's connecting side may cause one more line in the log.
func (in *inbound) says() bool {
	return in.core.noise.Allows(in.from, in.listener.ctx.opts.Log)
}

func (in *inbound) build() (*Comm, error) {
	m, l := in.member, in.listener
	if in.goMsg.Session != m.Session.ID || in.goMsg.Comm != m.ID {
		return nil, report.Errorf(report.Peer, "accept", "go names session %#x comm %d, attach named %#x and %d",
			in.goMsg.Session, in.goMsg.Comm, m.Session.ID, m.ID).On(l.dev.Name).With(in.peer).
			Try("both hosts must run the same weft")
	}
	var via carrier.Carrier
	if in.made != nil {
		for _, k := range in.conns {
			if k != nil {
				k.Close()
			}
		}
		via = in.made.by
	} else {
		if err := in.options(); err != nil {
			return nil, err
		}
		via = l.ctx.overTCP(l.dev, fastpath.Recv, in.peer, in.conns, 0)
	}
	c, err := newComm(l.ctx, l.dev, fastpath.Recv, in.peer, "", via)
	if err != nil {
		return nil, err
	}
	in.made = nil // the comm's
	c.attached(m)
	if !own(l.ctx, l.ctx.owned.comms, c, struct{}{}) {
		c.Close()
		return nil, errFinalized("accept")
	}
	return c, nil
}

// options sets on all streams what a listening socket cannot give them.
func (in *inbound) options() error {
	o := tcp.DataOptions(in.core.cfg.Knobs, in.listener.ctx.opts.TrafficClass)
	o.NoDelay, o.RcvBuf, o.SndBuf = false, -1, -1 // inherited from the listening socket
	for _, k := range in.conns {
		if err := k.Apply(o); err != nil {
			return report.Errorf(report.Host, "accept", "%w", err).On(in.listener.dev.Name).With(in.peer).
				Try("a seccomp or container profile may forbid that option; see NCCL_SOCKET_TOS_CONFIG")
		}
	}
	return nil
}

// drop ends what a comm that could not be built was to run on.
func (in *inbound) drop() {
	for _, k := range in.conns {
		if k != nil {
			k.Close()
		}
	}
	if in.made != nil {
		in.made.drop()
		in.made = nil
	}
}
