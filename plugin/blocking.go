package plugin

import (
	"time"

	"weft/internal/knob"
	"weft/internal/report"
)

// What the adapters of tables v2 to v4, whose calls block, wait for; compat's
// wait.h has the same numbers.
const (
	waitConnect   = 0
	waitAccept    = 1
	waitFlush     = 2
	waitCollFlush = 3
)

// heldFlush is how long the executor lets a flush wait for a thread that is stopped inside a call (late.c), and a second to say so.
const heldFlush = 12 * time.Second

// blockingDeadline is how long such a call may take. The transport ends a
// connect at the same limit and knows why; it gets a second to say so.
func (p *process) blockingDeadline(kind int) time.Duration {
	switch kind {
	case waitConnect:
		return p.knobs().Seconds(knob.ConnectTimeout) + time.Second
	case waitAccept:
		return p.knobs().Seconds(knob.AcceptTimeout)
	case waitFlush:
		return max(p.knobs().Seconds(knob.Timeout), heldFlush)
	}
	return p.knobs().Seconds(knob.Timeout)
}

// blockingTimedOut is the error of one that took longer.
func (p *process) blockingTimedOut(kind, table int, waited time.Duration) error {
	c, err := p.contexts.find("wait", uintptr(table))
	if err != nil || kind == waitCollFlush { // collNet has no contexts here
		c = &netCtx{table: table, log: p.log}
	}
	waited = waited.Truncate(time.Second) // limits are whole seconds
	switch kind {
	case waitConnect:
		return c.fail(report.Errorf(report.Network, "connect", "the peer did not answer within %v", waited).
			Try("see whether it runs and can be reached; WEFT_CONNECT_TIMEOUT is the limit"))
	case waitAccept:
		return c.fail(report.Errorf(report.Peer, "accept", "no peer came within %v", waited).
			Try("see whether all ranks run; WEFT_ACCEPT_TIMEOUT is the limit"))
	}
	return c.fail(report.Errorf(report.Internal, "flush", "not complete after %v", waited).
		Try("please report it; WEFT_TIMEOUT is the limit"))
}
