package comms

import (
	"time"

	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/fastpath"
	"weft/transport/rendezvous"
	"weft/transport/session"
	"weft/transport/task"
	"weft/transport/wire"
)

// What a comm does when its peer, or the control connection, ends it.

// PeerClosed is told that the peer has closed its side in good order. What it sent may
// still be on its way to a receiver.
func (c *Comm) PeerClosed() {
	if s, is := c.carrier.(carrier.Streaming); is && c.kind == fastpath.Recv {
		s.Mute()
	}
	c.fenced.left()
}

// PeerRefused ends a group whose send was larger than our receive. One that the
// peer cannot refuse, because it is over or was never announced, ends the comm.
func (c *Comm) PeerRefused(s *session.Session, m *wire.Refused) {
	if c.Over() {
		return
	}
	err := report.Errorf(report.Usage, "irecv", "the peer sent %d bytes into a receive of %d (group %d, entry %d)", m.Size, m.Room, m.Seq, m.Entry).
		On(c.dev.Name).With(c.peer).Try("both ranks must agree on sizes; nothing was written")
	refused, held := c.fp.RefuseGroup(m.Seq, c.code(err), func() {
		if s.Says() {
			report.Say(c.host.Log, err)
		}
	})
	if !refused && held == nil {
		c.Fail(report.Errorf(report.Peer, c.Verb(), "the peer sent what it must not: it refuses group %d, which is not open", m.Seq).
			On(c.dev.Name).With(c.peer).Try("both hosts must run the same weft"))
	}
}

// PeerGaveUp is told that the peer has ended its side.
func (c *Comm) PeerGaveUp(err *report.Error, aborted bool) {
	ended := func(c *Comm) bool { return c.lost(err) }
	if aborted {
		ended = func(c *Comm) bool { return c.AbortedBy(err) }
	}
	if _, streams := c.carrier.(carrier.Streaming); !streams {
		go c.orphaned(ended)
		return
	}
	if !ended(c) && report.CauseOf(c.failure()) == report.Peer {
		report.Say(c.host.Log, err) // its streams' end, which says less, was read first
	}
}

// failure is what ended c first, nil while nothing has.
func (c *Comm) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// lastWord is what the peer has said of c, whose stream it has ended: that it closed
// c, or gave it up; nil: nothing. The word left before the stream's end did, so it
// is waited for a moment. again: it is one of an abort that has been told.
func (c *Comm) lastWord() (why *report.Error, again bool) {
	c.mu.Lock()
	m := c.member
	c.mu.Unlock()
	if m == nil {
		return nil, false
	}
	why, abort, closed := m.LastWord()
	if closed {
		why, abort = session.ErrAborted(c.peer, c.Verb(), "the peer closed the connection").On(c.dev.Name), true
	}
	return why, abort && !m.Session.FirstAbort()
}

// SessionEnded ends the comms that a session has left. A process that exits may
// leave bytes behind which its comms still owe their receivers. The streams' own
// ends say when all has arrived; what remains are comms whose streams go on
// without their control connection. Comms without streams have had what arrives,
// once their queues are empty.
func SessionEnded(left []session.Comm, why *report.Error) {
	var apart []*Comm // from their control connection
	for _, x := range left {
		c := x.(*Comm)
		_, streams := c.carrier.(carrier.Streaming)
		switch {
		case !rendezvous.PeerGone(why.Err):
			c.lost(why)
		case streams:
			apart = append(apart, c)
		default:
			go c.orphaned(func(c *Comm) bool { return c.lost(why) })
		}
	}
	if len(apart) > 0 {
		go follow(apart, why)
	}
}

// suspected records how the session ended, for the cause of what follows.
func (c *Comm) suspected(why *report.Error) {
	c.mu.Lock()
	c.suspect = why
	c.mu.Unlock()
}

// followEvery paces follow; a stream that stands still for so long is not ending.
const followEvery = time.Second

// follow follows the comms of a session whose peer seems gone until each has
// ended with its streams, or shows that its streams live on without it.
func follow(left []*Comm, why *report.Error) {
	defer task.Rescue(left[0].host.Log, "control connection", func(error) {
		for _, c := range left {
			c.lost(why)
		}
	})
	bytes := map[*Comm]uint64{}
	for _, c := range left {
		c.suspected(why)
		bytes[c] = c.carrier.(carrier.Streaming).Streams().Bytes
	}
	for len(bytes) > 0 {
		time.Sleep(followEvery)
		for c, before := range bytes {
			st := c.carrier.(carrier.Streaming).Streams()
			switch {
			case c.Over() || st.Ended:
				delete(bytes, c)
			case st.Unread == 0 && st.Bytes == before:
				c.lost(why)
				delete(bytes, c)
			default:
				bytes[c] = st.Bytes
			}
		}
	}
}

// orphaned ends a comm without streams whose peer is gone: what has arrived is reported done, all else fails.
func (c *Comm) orphaned(end func(*Comm) bool) {
	defer task.Rescue(c.host.Log, "control connection", func(error) { end(c) })
	c.fenced.drain()
	end(c)
}
