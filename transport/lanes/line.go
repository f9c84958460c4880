package lanes

import (
	"fmt"

	"weft/internal/report"
	"weft/transport/route"
	"weft/transport/verbs/ibv"
	"weft/transport/wire"
)

// Describe is how the comm is connected, for the log: its pairs of ports, and
// what its queue pairs have.
func (v *Carrier) Describe(via string) string {
	q := v.Queues()
	var routes []string
	for i := range v.Pairs {
		routes = append(routes, describePair(&v.Pairs[i], q.Lanes))
	}
	ece := "no ECE"
	if q.ECE != (wire.ECE{}) {
		ece = fmt.Sprintf("ECE %#x of vendor %#x", q.ECE.Options, q.ECE.Vendor)
	}
	later := ""
	first := len(q.Lanes)
	if n := len(v.PairAt) - first; n > 0 {
		later = fmt.Sprintf(" and %d later", n)
	}
	of := ""
	if q.Lanes[0].Again {
		of = " of an earlier connection"
	}
	return fmt.Sprintf("%s%s, %d lane%s%s (QPs %s%s), %v, SL %d, TC %d, inline %d, %s", report.Few(routes, 4, ", "), via,
		first, report.Plural(first), later, numbers(q.Lanes), of, v.Tuning, v.sl, v.tc, q.Lanes[0].QP.Inline, ece)
}

// describePair names a pair of ports and the path's MTU, which is known with the
// first of its lanes: the smaller of both ports', or what passes between them.
func describePair(p *route.Pair, lanes []*Lane) string {
	mtu := "later"
	for i := range lanes {
		if lanes[i].pair == p {
			mtu = fmt.Sprintf("MTU %d", min(p.Local.PathMTU(), ibv.MTUBytes(p.CapMTU(lanes[i].theirs.MTU))))
			break
		}
	}
	return fmt.Sprintf("%s (GIDs %v and %v, %s)", p.Local.Name, p.GID.Addr.Unmap(), p.PeerGID.Addr.Unmap(), mtu)
}

// numbers are the queue pairs' on both sides.
func numbers(lanes []*Lane) string {
	var each []string
	for i := range lanes {
		each = append(each, fmt.Sprintf("%d-%d", lanes[i].QP.Number, lanes[i].theirs.QPN))
	}
	return report.Few(each, 8, " ")
}
