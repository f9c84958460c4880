// Package event hears what cards say of themselves: it tells who subscribed, keeps
// what concerns ports, and tries a card that failed until it works again.
package event

import (
	"weft/internal/report"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/port"
	"weft/transport/verbs/qp"
)

// Event is something that a card said of itself.
type Event struct {
	Kind   ibv.EventKind
	NIC    string
	Device *port.Device  // events of a port that is in use
	QP     *qp.QP        // events of a queue pair
	CQ     *qp.CQ        // events of a completion queue
	Err    *report.Error // fatal: what the comms that it concerns end with; nil: not fatal
}
