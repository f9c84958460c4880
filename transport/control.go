package transport

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"weft/internal/report"
	"weft/transport/rendezvous"
	"weft/transport/task"
	"weft/transport/wire"
)

// read is a session's one goroutine: it serves the peer's messages until the
// connection ends.
func (s *session) read(rd *wire.Reader) {
	defer task.Rescue(s.core.cfg.Log, "control connection", func(err error) {
		s.end(report.Errorf(report.Internal, "control connection", "%w", err).With(s.name))
	})
	for {
		b, err := rd.Next()
		if err != nil {
			other := s.core.sessions.other(s) // it waits for this one, and is forgotten soon after
			close(s.heard)
			if rendezvous.PeerGone(err) {
				s.hear(other)
			}
			s.end(s.broken("reading", err))
			return
		}
		if err := s.serve(b); err != nil {
			s.end(report.Errorf(report.Peer, "control connection", "%w", err).With(s.name).
				Try("both hosts must run the same weft"))
			return
		}
	}
}

// serve acts on one message. A message about a comm that is not here any more
// is no error: the two sides close at different times.
func (s *session) serve(b []byte) error {
	switch k := wire.KindOf(b); k {
	case wire.KindAttach:
		m, err := wire.ParseAttach(b)
		if err != nil {
			return err
		}
		return s.onAttach(&m)
	case wire.KindClosed:
		m, err := wire.ParseClosed(b)
		if err != nil {
			return err
		}
		var c *Comm
		s.withMember(m.Comm, func(mb *member) {
			if !mb.closed {
				c = mb.comm
			}
			mb.closed = true
			mb.end()
		})
		if c != nil {
			c.carrier.left(c)
		}
	case wire.KindRefused:
		m, err := wire.ParseRefused(b)
		if err != nil {
			return err
		}
		if c := s.comm(m.Comm); c != nil {
			c.refusedByPeer(s, &m)
		}
	case wire.KindFailed:
		m, err := wire.ParseFailed(b)
		if err != nil {
			return err
		}
		s.onFailed(&m)
	case wire.KindBye:
		if _, err := wire.ParseBye(b); err != nil {
			return err
		}
		s.mu.Lock()
		s.parting = true
		s.mu.Unlock()
	case wire.KindProbeOffer, wire.KindProbeAnswer, wire.KindProbeState:
		return s.serveProbe(b)
	case wire.KindFurther, wire.KindFurtherAnswer, wire.KindJoin, wire.KindJoined:
		return s.serveFurther(b)
	default:
		return fmt.Errorf("message of %s: %w", k, wire.ErrMalformed)
	}
	return nil
}

func (s *session) onAttach(a *wire.Attach) error {
	if s.active {
		return fmt.Errorf("attach from the listening side: %w", wire.ErrMalformed)
	}
	m := s.join(a.Comm)
	if m == nil {
		return fmt.Errorf("comm %d attached twice: %w", a.Comm, wire.ErrMalformed)
	}
	why := errors.New("the listen knows no such comm: it was given up or closed")
	if in := s.core.findInbound(a.Nonce); in != nil {
		if why = in.attach(m, a); why == nil {
			s.occupied()
			return nil
		}
	}
	s.leave(m)
	s.tell(&wire.Failed{Header: wire.Header{Comm: a.Comm}, Reason: why.Error()})
	return nil
}

func (s *session) onFailed(f *wire.Failed) {
	err := report.Errorf(report.Peer, "comm", "the peer gave the connection up: %s", f.Reason).With(s.name).
		Try("look at the peer's log")
	ended := func(c *Comm) bool { return c.lost(err) }
	if f.Aborted {
		err = aborted(s.name, "comm", "the peer's host gave the connection up with requests in flight: %s", f.Reason)
		ended = func(c *Comm) bool { return c.abortedBy(err) }
	} else {
		s.mu.Lock()
		s.said = word{f.Reason, time.Now()}
		s.mu.Unlock()
	}
	var c *Comm
	s.withMember(f.Comm, func(m *member) {
		if m.failed == nil {
			m.failed, m.aborted, c = err, f.Aborted, m.comm
		}
		m.end()
	})
	if c == nil {
		return
	}
	if _, ok := c.carrier.streams(); !ok {
		go c.orphaned(ended)
		return
	}
	if !ended(c) && report.CauseOf(c.failure()) == report.Peer {
		report.Say(c.ctx.opts.Log, err) // its streams' end, which says less, was read first
	}
}

func (s *session) withMember(id uint64, do func(*member)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.members[id]; m != nil {
		do(m)
	}
}

func (s *session) comm(id uint64) (c *Comm) {
	s.withMember(id, func(m *member) { c = m.comm })
	return c
}

// broken says how the connection ended, as far as the kernel tells.
func (s *session) broken(doing string, err error) *report.Error {
	e := report.Errorf(report.Network, "control connection", "%s: %w", doing, rendezvous.Short(err)).With(s.name).
		Try("the network to the peer failed; look at the link and at the peer's log")
	switch {
	case rendezvous.PeerGone(err):
		e.Cause = report.Peer
		e.Err = s.afterWord(e.Err)
		e.Remedy = "the peer's process ended or was killed; look at its log"
	case errors.Is(err, syscall.ETIMEDOUT), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		since := "any more"
		if d, known := s.conn.Silence(); known {
			since = fmt.Sprintf("for %v", d)
		}
		e.Remedy = fmt.Sprintf("the peer's host did not answer %s: it is down or the network between is cut", since)
	}
	return e
}

// end closes the session for good; its comms learn why.
func (s *session) end(why *report.Error) {
	s.mu.Lock()
	if s.ended != nil {
		s.mu.Unlock()
		return
	}
	s.ended = why
	orderly := s.parting
	if s.idle != nil {
		s.idle.Stop()
	}
	var left []*Comm
	for _, m := range s.members {
		m.end()
		if m.failed != nil { // the peer told its cause before it left
			continue
		}
		m.failed = why
		if m.comm != nil && !m.closed {
			left = append(left, m.comm)
		}
	}
	s.mu.Unlock()
	s.core.sessions.forget(s)
	s.core.pool.forget(func(k *kit) bool { return k.session == s })
	s.cut(why)
	s.conn.Close()
	if len(left) == 0 {
		if !orderly && !errors.Is(why, net.ErrClosed) && !rendezvous.PeerGone(why.Err) && s.says() {
			s.core.cfg.Log.Info(report.Net, "%v", why)
		}
		return
	}
	if !rendezvous.PeerGone(why.Err) {
		for _, c := range left {
			c.lost(why)
		}
		return
	}
	// A process that exits may leave bytes behind which its comms still owe their
	// receivers. The streams' own ends say when all has arrived; what remains
	// are comms whose streams go on without their control connection.
	// Comms without streams have had what arrives, once their queues are empty.
	var streaming []*Comm
	for _, c := range left {
		if _, ok := c.carrier.streams(); ok {
			streaming = append(streaming, c)
			continue
		}
		go c.orphaned(func(c *Comm) bool { return c.lost(why) })
	}
	if len(streaming) > 0 {
		go watch(streaming, why)
	}
}

// watchEvery paces watch; a stream that stands still for so long is not ending.
const watchEvery = time.Second

// watch follows the comms of a session whose peer seems gone until each has
// ended with its streams, or shows that its streams live on without it.
func watch(left []*Comm, why *report.Error) {
	defer task.Rescue(left[0].ctx.opts.Log, "control connection", func(error) {
		for _, c := range left {
			c.lost(why)
		}
	})
	bytes := map[*Comm]uint64{}
	for _, c := range left {
		c.suspected(why)
		st, _ := c.carrier.streams()
		bytes[c] = st.bytes
	}
	for len(bytes) > 0 {
		time.Sleep(watchEvery)
		for c, before := range bytes {
			st, _ := c.carrier.streams()
			switch {
			case c.over() || st.ended:
				delete(bytes, c)
			case st.unread == 0 && st.bytes == before:
				c.lost(why)
				delete(bytes, c)
			default:
				bytes[c] = st.bytes
			}
		}
	}
}

// orphaned ends a comm without streams whose peer is gone: what has arrived is reported done, all else fails.
func (c *Comm) orphaned(end func(*Comm) bool) {
	defer task.Rescue(c.ctx.opts.Log, "control connection", func(error) { end(c) })
	c.carrier.drain()
	end(c)
}
