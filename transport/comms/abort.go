package comms

import (
	"weft/internal/report"
)

// How an abort is logged. A host that aborts deregisters and closes with requests in
// flight: that is its right, so its own log has it at INFO. On the peer, comms that
// have no request end at INFO too; of those that the host waits for, one per abort is
// a WARN and the others are not. A peer that closes in good order is not logged at
// all, until the host asks for more.

// gaveUp records that the host itself ended c, and why; the executor hands out the
// code. The peer hears that this was no failure.
func (c *Comm) gaveUp(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil {
		c.failed = err
	}
	report.Mention(c.host.Log, err)
	if m := c.member; m != nil {
		m.TellFailed(report.Reason(err), true)
	}
}

// GiveUp ends c on both sides because the host gave up what c is a part of.
func (c *Comm) GiveUp(err error) { c.fail(err, abort) }

// AbortedBy ends c, which is attached, because the peer's host gave it up. It
// reports whether this was the first cause.
func (c *Comm) AbortedBy(err *report.Error) bool {
	if c.fp.Snapshot().Outstanding == 0 || !c.Member().Session.FirstAbort() {
		report.Mention(c.host.Log, err)
	}
	return c.lost(err)
}

// Forsaken ends c, of which nothing is under way, because the peer has closed it in
// good order: no news, unless the host then asks for a request all the same. It
// reports whether this was the first cause.
func (c *Comm) Forsaken(err error) bool {
	c.mu.Lock()
	first := c.failed == nil && !c.closed
	if first {
		c.failed, c.unsaid = err, true
	}
	c.mu.Unlock()
	return first && c.fp.Fail(c.code(err))
}

// asked is called when the host asks for a request on c, which has ended: if the
// cause is not logged yet, it is, before test returns the code.
func (c *Comm) asked() int32 {
	c.mu.Lock()
	why, unsaid, m := c.failed, c.unsaid, c.member
	c.unsaid = false
	c.mu.Unlock()
	if why == nil {
		return 0
	}
	if unsaid {
		if !m.Session.FirstAbort() {
			report.Mention(c.host.Log, why)
		}
		report.Say(c.host.Log, why) // once
	}
	return c.code(why)
}
