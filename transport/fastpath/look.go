package fastpath

import "sync/atomic"

// Look is how far a comm has come, for who compares it with how far it had come
// before. Its words are read one after the other, while a thread may write them.
type Look struct {
	Begun       uint32 // changes with each request
	Outstanding uint32 // requests whose end the host has not seen
	Rounds      uint32 // changes while the host tests requests that are not done
	Vain        uint64 // isends that found no receive
	Done        uint64 // messages that were handed over, or arrived in full
	Unsent      uint32 // posted sends that are not wholly handed over
	Incomplete  uint32 // posted groups of receives that are not complete
	Group       uint64 // the first of which something lacks: sends, or data
	Next        uint64 // the first that has not begun here
	Ready       bool   // sender: the receives of Group are there
	Parts       uint32 // receiver: what has come of Group, in part
}

// Look reads it. Of a comm that waits for nothing only the first page is read.
func (c *Comm) Look() Look {
	v := c.view
	l := Look{
		Begun: atomic.LoadUint32(&v.reqGen), Outstanding: atomic.LoadUint32(&v.outstanding), Rounds: atomic.LoadUint32(&v.round),
		Vain: atomic.LoadUint64(&v.vain), Done: atomic.LoadUint64(&v.messages),
		Unsent: atomic.LoadUint32(&v.unsent), Incomplete: atomic.LoadUint32(&v.incomplete),
	}
	if c.kind == Send {
		l.Group = atomic.LoadUint64(&v.headSeq)
		l.Next = l.Group
		if l.Vain > 0 {
			l.Ready = atomic.LoadUint64(&v.ring[atomic.LoadUint32(&v.headLine)%wfLines].seq) == l.Group
		}
		return l
	}
	l.Group, l.Next = atomic.LoadUint64(&v.tailSeq), atomic.LoadUint64(&v.nextSeq)
	if slot := atomic.LoadUint32(&v.group[l.Group%wfLines]); l.Incomplete > 0 && slot < wfSlots {
		r := &v.req[slot]
		l.Parts = atomic.LoadUint32(&r.parts) + atomic.LoadUint32(&r.came) + atomic.LoadUint32(&r.e[0].got)
	}
	return l
}
