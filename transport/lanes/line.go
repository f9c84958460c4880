package lanes

import (
	"fmt"

	"weft/internal/report"
	"weft/transport/wire"
)

// Describe is how the comm is connected, for the log: its pairs of ports, and
// what its queue pairs have.
func (v *Carrier) Describe(via string) string {
	q := v.have()
	var routes []string
	for i := range v.Pairs {
		routes = append(routes, describePair(&v.Pairs[i], q.lanes))
	}
	ece := "no ECE"
	if q.ece != (wire.ECE{}) {
		ece = fmt.Sprintf("ECE %#x of vendor %#x", q.ece.Options, q.ece.Vendor)
	}
	later := ""
	first := len(q.lanes)
	if n := len(v.PairAt) - first; n > 0 {
		later = fmt.Sprintf(" and %d later", n)
	}
	of := ""
	if q.lanes[0].again {
		of = " of an earlier connection"
	}
	return fmt.Sprintf("%s%s, %d lane%s%s (QPs %s%s), %v, SL %d, TC %d, inline %d, %s", report.Few(routes, 4, ", "), via,
		first, report.Plural(first), later, numbers(q.lanes), of, v.Tuning, v.sl, v.tc, q.lanes[0].qp.Inline, ece)
}
