package offers

import (
	"sync"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/device"
	"weft/transport/lanes"
	"weft/transport/route"
	"weft/transport/session"
	"weft/transport/verbs"
	"weft/transport/wire"
)

// Way is RDMA as a way to carry a comm, of one process.
type Way struct {
	Knobs    *knob.Values
	Log      report.Logger // of the process
	Provider *verbs.Provider
	NoVerbs  string // why Provider is nil, for the peers' messages
	Devices  *device.List
	Queues   *lanes.Shared
	Sessions *session.All

	manyLanes sync.Once // a number of lanes that is cut is said once
}

var _ carrier.Asking = (*Way)(nil)

// caller is the connecting side of one connect, taker the listening one.
type (
	caller struct {
		way *Way
		*carrier.Call
	}
	taker struct {
		way *Way
		*carrier.Arrival
	}
)

// made is a carrier of queue pairs, without a comm.
func made(v *lanes.Carrier) *carrier.Made {
	return &carrier.Made{By: v, Drop: v.Discard}
}

// offersMade bounds a connect's offers: for each route, queue pairs of a closed
// connection, and new ones.
const offersMade = 2 * route.Trials

// Asks is the kind of an offer.
func (w *Way) Asks() (wire.Kind, int) { return wire.KindOffer, offersMade }

// Takes is the flag of a go over RDMA.
func (w *Way) Takes() uint16 { return wire.FlagVerbs }

// lanesFor is how many queue pairs a comm over so many pairs of ports gets.
func (w *Way) lanesFor(pairs int) int {
	n, most := int(w.Knobs.Int(knob.IBQPsPerConnection)), wire.MaxLanes/pairs
	if n > most {
		w.manyLanes.Do(func() {
			w.Log.Warn("NCCL_IB_QPS_PER_CONNECTION=%d is more than a connection over %d pair%s of ports can have; each gets %d", n, pairs, report.Plural(pairs), most)
		})
	}
	return pairs * max(1, min(n, most))
}
