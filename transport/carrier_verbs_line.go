package transport

import (
	"fmt"

	"weft/internal/report"
	"weft/transport/route"
	"weft/transport/verbs"
	"weft/transport/wire"
)

// Describe is how the comm is connected, for the log: its pairs of ports, and
// what its queue pairs have.
func (v *verbsCarrier) Describe(via string) string {
	var routes []string
	for i := range v.pairs {
		routes = append(routes, describePair(&v.pairs[i], v.lanes))
	}
	ece := "no ECE"
	if v.ece != (wire.ECE{}) {
		ece = fmt.Sprintf("ECE %#x of vendor %#x", v.ece.Options, v.ece.Vendor)
	}
	later := ""
	first := len(v.lanes)
	if n := len(v.pairAt) - first; n > 0 {
		later = fmt.Sprintf(" and %d later", n)
	}
	of := ""
	if v.lanes[0].again {
		of = " of an earlier connection"
	}
	return fmt.Sprintf("%s%s, %d lane%s%s (QPs %s%s), %v, SL %d, TC %d, inline %d, %s", report.Few(routes, 4, ", "), via,
		first, report.Plural(first), later, numbers(v.lanes), of, v.tuning, v.sl, v.tc, v.lanes[0].qp.Inline, ece)
}

// describePair names a pair of ports and the path's MTU, which is known with the
// first of its lanes: the smaller of both ports', or what passes between them.
func describePair(p *route.Pair, lanes []*verbsLane) string {
	mtu := "later"
	for i := range lanes {
		if lanes[i].pair == p {
			mtu = fmt.Sprintf("MTU %d", min(p.Local.PathMTU(), verbs.MTUBytes(p.CapMTU(lanes[i].theirs.MTU))))
			break
		}
	}
	return fmt.Sprintf("%s (GIDs %v and %v, %s)", p.Local.Name, p.GID.Addr.Unmap(), p.PeerGID.Addr.Unmap(), mtu)
}

// numbers are the queue pairs' on both sides.
func numbers(lanes []*verbsLane) string {
	var each []string
	for i := range lanes {
		each = append(each, fmt.Sprintf("%d-%d", lanes[i].qp.Number, lanes[i].theirs.QPN))
	}
	return report.Few(each, 8, " ")
}
