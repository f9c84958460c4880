package transport

import (
	"fmt"
	"strings"

	"weft/transport/verbs"
	"weft/transport/wire"
)

// describe is how the comm is connected, for the log: its pairs of ports, and
// what its queue pairs have.
func (v *verbsCarrier) describe(via string) string {
	var routes []string
	for i := range v.pairs {
		p := &v.pairs[i]
		routes = append(routes, fmt.Sprintf("%s (GIDs %v and %v, MTU %d)", p.local.Name, p.gid.Addr.Unmap(), p.peerGID.Addr.Unmap(), v.mtu(p)))
	}
	ece := "no ECE"
	if v.ece != (wire.ECE{}) {
		ece = fmt.Sprintf("ECE %#x of vendor %#x", v.ece.Options, v.ece.Vendor)
	}
	later := ""
	if n := len(v.lanes) - v.first; n > 0 {
		later = fmt.Sprintf(" and %d later", n)
	}
	return fmt.Sprintf("%s%s, %d lane%s%s (queue pairs %s), %v, SL %d, TC %d, inline %d, %s", few(routes, 4, ", "), via,
		v.first, plural(v.first), later, numbers(v.lanes[:v.first], v.theirs.lanes), v.tuning, v.sl, v.tc, v.lanes[0].Inline, ece)
}

// mtu is the path's: the smaller of both ports'.
func (v *verbsCarrier) mtu(p *verbsPair) int {
	mtu := p.local.PathMTU()
	for i, t := range v.theirs.lanes {
		if v.pairOf(i).key() == p.key() {
			mtu = min(mtu, verbs.MTUBytes(t.MTU))
		}
	}
	return mtu
}

// numbers are the queue pairs' on both sides.
func numbers(lanes []*verbs.QP, theirs []wire.QPEnd) string {
	var each []string
	for i, q := range lanes {
		each = append(each, fmt.Sprintf("%d-%d", q.Number, theirs[i].QPN))
	}
	return few(each, 8, " ")
}

// few joins a list that may be too long for a line of NCCL's log, 1024 bytes.
func few(list []string, most int, by string) string {
	if n := len(list) - most; n > 0 {
		list = append(list[:most:most], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(list, by)
}
