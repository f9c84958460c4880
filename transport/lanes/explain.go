package lanes

import (
	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/verbs/qp"
)

// Explain puts what a queue pair met into words; other faults stay as they are.
func (v *Carrier) Explain(f *fastpath.Fault, err *report.Error) *report.Error {
	q, dev := v.met(f)
	switch f.Kind {
	case fastpath.FaultCompletion:
		c := qp.Completion{Status: uint32(f.Errno), Vendor: uint32(f.Got), QP: q, Work: workName(f.Want)}
		if q != nil {
			c.QPN = q.Number
		}
		err = c.Explain()
	case fastpath.FaultPost:
		err = qp.PostFailed(f.Where, dev, f.Errno, q)
	}
	if err.Dev == "" { // else the one of the comm's ports that it happened on
		err.On(v.Device.Name)
	}
	return err.With(v.Peer)
}

// met is the queue pair that a fault is about, nil for none, and its port's name:
// that of a lane, or a port's flush queue pair or completion queue.
func (v *Carrier) met(f *fastpath.Fault) (q *qp.QP, dev string) {
	v.life.Lock()
	defer v.life.Unlock()
	if lane := int(f.Lane); lane < len(v.lanes) {
		return v.lanes[lane].qp, v.lanes[lane].port.device.Name
	}
	for _, p := range v.ports {
		switch {
		case p.slot != int(f.Lane)-fastpath.FaultDevice:
		case f.Where == "ibv_poll_cq":
			return nil, p.device.Name
		default:
			return p.loop, p.device.Name
		}
	}
	return nil, v.Device.Name
}

// workName says what a wr_id stands for: its upper four bits are the kind.
func workName(wrID uint64) string {
	switch wrID >> 60 {
	case 1, 5, 6:
		return "a data write"
	case 2:
		return "a CTS"
	case 3:
		return "a flush read"
	case 4:
		return "a receive"
	}
	return "a request"
}
