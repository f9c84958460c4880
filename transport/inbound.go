package transport

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/comms"
	"weft/transport/fastpath"
	"weft/transport/rendezvous"
	"weft/transport/session"
	"weft/transport/task"
	"weft/transport/wire"
)

// inbound is a comm that the passive side is setting up. It is complete when
// go has come, every stream has joined and the session carries it, in any
// order; whoever brings the last part finishes it.
type inbound struct {
	ctx      *Context
	listener *Listener
	f1       wire.Frame1
	f2       wire.Frame2 // its nonce names the comm: nobody else can choose it
	hello    wire.Hello  // the connecting process
	peer     string
	addr     netip.Addr // of the connecting process
	deadline *time.Timer
	since    time.Time
	proven   atomic.Bool // frame 3 or attach has come

	mu      sync.Mutex
	limit   time.Duration      // what deadline was set to last
	until   time.Time          // when that is over; protected by mu, as all below
	conns   []*rendezvous.Conn // by stream
	missing int                // parts still to come
	goMsg   wire.Go
	went    bool            // go has come: the peer has its comm
	member  *session.Member // set by attach
	made    *carrier.Made   // set by a go that takes up an offer: there are no further streams
	over    bool            // finished or aborted
}

func newInbound(l *Listener, first *rendezvous.Conn, f1 wire.Frame1, f2 wire.Frame2) *inbound {
	in := &inbound{ctx: l.ctx, listener: l, f1: f1, f2: f2, since: time.Now(), conns: make([]*rendezvous.Conn, l.dev.Streams())}
	in.missing = len(in.conns) - 1 + 2 // streams after the first, attach, go
	in.conns[0], in.addr = first, first.Remote().Addr()
	in.deadline = time.AfterFunc(time.Hour, func() { // register sets the true time
		defer task.Rescue(in.ctx.cfg.Log, "accept", task.Nobody)
		in.expired()
	})
	in.deadline.Stop()
	return in
}

// register makes in known to streams and attach.
func (in *inbound) register() bool {
	in.peer = rendezvous.EndName(&in.hello, in.conns[0])
	in.ctx.inbound.Lock()
	in.ctx.inbound.byNonce[in.f2.Nonce] = in
	in.ctx.inbound.Unlock()
	in.mu.Lock()
	in.within(in.ctx.timeout)
	in.mu.Unlock()
	if !in.listener.begin(in) {
		in.forget()
		return false
	}
	return true
}

func (in *inbound) from() wire.ProcessID { return in.hello.Process }

func (in *inbound) unproven() (since time.Time, is bool) { return in.since, !in.proven.Load() }

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
	in.proven.Store(true)
	if !in.went {
		in.lingers()
	}
	in.part()
	return nil
}

// lingers has a comm that is attached wait for go for as long as the connecting
// side keeps it: its host may be slow to ask. in.mu is held.
func (in *inbound) lingers() {
	limit := 2*in.ctx.cfg.Knobs.Seconds(knob.ConnectTimeout) + in.ctx.timeout
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
		in.within(in.ctx.timeout)
	}
}

// within sets the time that is left for what is missing. in.mu is held.
func (in *inbound) within(limit time.Duration) {
	in.limit, in.until = limit, time.Now().Add(limit)
	in.deadline.Reset(limit)
}

// expired ends what has not come about in time. Behind go the peer takes the comm for
// connected: who accepts must hear that it will not come.
func (in *inbound) expired() {
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
func (in *inbound) goes(m wire.Go, c *rendezvous.Conn, by *carrier.Made) {
	in.mu.Lock()
	if in.over {
		in.mu.Unlock()
		c.Close()
		if by != nil {
			by.Drop()
		}
		return
	}
	in.goMsg, in.made, in.went = m, by, true
	in.within(in.ctx.timeout) // for the control connection, which others may use too
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
	in.ctx.inbound.Lock()
	delete(in.ctx.inbound.byNonce, in.f2.Nonce)
	in.ctx.inbound.Unlock()
	in.deadline.Stop()
}

// abort gives up and closes every stream; why is logged unless nil.
func (in *inbound) abort(why error) { in.giveUp(outcome{}, why) }

// fail gives up and lets accept say why: the host must not wait for this one.
func (in *inbound) fail(why error) { in.giveUp(outcome{err: why}, nil) }

func (in *inbound) giveUp(last outcome, why error) {
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
		by.Drop()
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
		in.ctx.opts.Log.Info(report.Net, "%v",
			report.Errorf(report.Peer, "accept", "%w", why).On(in.listener.dev.Name).With(in.peer))
	}
}

// finish makes the comm and queues it for accept.
func (in *inbound) finish() {
	l := in.listener
	c, err := in.build()
	if err == nil && !l.deliver(in, outcome{comm: c}) {
		c.Close() // the listen was closed meanwhile
		return
	}
	if err == nil {
		return
	}
	lost := outcome{}
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
	return in.ctx.noise.Allows(in.addr, in.ctx.opts.Log)
}

func (in *inbound) build() (*comms.Comm, error) {
	m, l := in.member, in.listener
	if in.goMsg.Session != m.Session.ID || in.goMsg.Comm != m.ID {
		return nil, report.Errorf(report.Peer, "accept", "go names session %#x comm %d, attach named %#x and %d",
			in.goMsg.Session, in.goMsg.Comm, m.Session.ID, m.ID).On(l.dev.Name).With(in.peer).
			Try("both hosts must run the same weft")
	}
	f := in.comm()
	var via carrier.Carrier
	if in.made != nil {
		for _, k := range in.conns {
			if k != nil {
				k.Close()
			}
		}
		via = in.made.By
	} else {
		var err error
		if via, err = l.ctx.plain.Accept(&f, in.conns); err != nil {
			return nil, err
		}
	}
	c, err := comms.New(&l.ctx.comms, l.dev, fastpath.Recv, in.peer, "", via)
	if err != nil {
		return nil, err
	}
	in.made = nil // the comm's
	c.Attached(m)
	if !own(l.ctx, l.ctx.owned.comms, c, struct{}{}) {
		c.Close()
		return nil, errFinalized("accept")
	}
	return c, nil
}

// comm is what its carrier is told of it.
func (in *inbound) comm() carrier.For {
	return in.ctx.comm(in.listener.dev, fastpath.Recv, in.peer, in.ctx.opts.TrafficClass)
}

// drop ends what a comm that could not be built was to run on.
func (in *inbound) drop() {
	for _, k := range in.conns {
		if k != nil {
			k.Close()
		}
	}
	if in.made != nil {
		in.made.Drop()
		in.made = nil
	}
}
