package qp

import (
	"fmt"
	"strings"
	"syscall"

	"weft/internal/report"
	"weft/transport/verbs/fail"
	"weft/transport/verbs/ibv"
)

// Completion is a work completion that did not succeed, as the C lane saw it.
// QP may be nil when its number is not known any more.
type Completion struct {
	Status uint32 // enum ibv_wc_status
	Vendor uint32 // vendor_err: what the driver's maker knows more
	QPN    uint32
	QP     *QP
	Work   string // what the request was: "data write", "CTS", ...
}

// Explain turns a failed completion into an error of one line: status, vendor
// code, queue pair, its state and its port's, and the likely causes in order.
func (c Completion) Explain() *report.Error {
	name, cause, causes, rules := fail.Status(c.Status)
	work := c.Work
	if work == "" {
		work = "a request"
	}
	text := fmt.Sprintf("%s ended %s (%d), vendor code %#x, QP %d", work, name, c.Status, c.Vendor, c.QPN)
	dev := ""
	if c.QP != nil {
		d := c.QP.dev
		dev = d.Name
		text += fmt.Sprintf(" in state %v", c.QP.State())
		attr, errno := d.Card().QueryPort(d.Number())
		switch {
		case errno != 0:
			text += fmt.Sprintf(", port %d cannot be queried (%v)", d.Number(), errno)
			cause, causes = report.Host, append([]string{"the device is gone or was reset"}, causes...)
		case attr.State != ibv.PortActive:
			text += fmt.Sprintf(", port %d %s", d.Number(), portStateName(attr.State))
			if fail.OfPath(c.Status) {
				rules = "WEFT-030 WEFT-035"
				cause, causes = report.Network, append([]string{"this port's link: cable, switch port, or the network device behind it"}, causes...)
			}
		default:
			text += fmt.Sprintf(", port %d active", d.Number())
		}
	}
	e := report.Errorf(cause, "completion", "%s", text).On(dev).See(rules)
	if len(causes) > 0 {
		e.Try("likely, in this order: %s", strings.Join(causes, "; "))
	}
	return e
}

func portStateName(state int32) string {
	names := [...]string{"in no state", "down", "initialising", "armed", "active", "active (deferred)"}
	if state >= 0 && int(state) < len(names) {
		return names[state]
	}
	return fmt.Sprintf("in state %d", state)
}

// PostFailed is the error of a request that the library did not take; q may be nil.
func PostFailed(call, dev string, errno syscall.Errno, q *QP) *report.Error {
	if q == nil {
		return fail.Call(call, dev, errno, "")
	}
	return fail.Call(call, dev, errno, "QP %d in state %v", q.Number, q.State())
}
