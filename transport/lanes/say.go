package lanes

import (
	"errors"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/route"
)

// say logs the outcome; before is how many lanes there were.
func (g *growth) say(before int, err error) {
	v, log := g.v, g.v.Log
	c := v.comm
	if err != nil {
		g.lost = append(g.lost, err.Error())
	}
	switch {
	case c.Over() || errors.Is(err, errOver) || g.m.Session.Life.Err() != nil:
	case len(g.lost) > 0:
		if g.says() {
			log.Info(report.Net, "%v goes on with %d of %d lanes: %s", c, len(v.lanes), len(v.PairAt), report.Few(g.lost, 8, "; "))
		}
	case v.Kind == fastpath.Send:
		log.Info(report.Net, "%v has %d lanes now%s (QPs %s)", c, len(v.lanes), v.newRoutes(before), numbers(v.lanes[before:]))
	}
}

// says reports whether a growth that lost lanes is told. A comm that the peer lets grow
// again and again, more often than there are lanes to lose, has its allowance of lines.
func (g *growth) says() bool {
	return int(g.v.further.told.Add(1)) <= len(g.v.PairAt) || g.m.Session.Says()
}

// newRoutes names the pairs of ports that have come with the lanes from one on.
func (v *Carrier) newRoutes(from int) string {
	known := map[*route.Pair]bool{}
	var all []string
	for i, l := range v.lanes {
		if i >= from && !known[l.pair] {
			all = append(all, describePair(l.pair, v.lanes))
		}
		known[l.pair] = true
	}
	if len(all) == 0 {
		return ""
	}
	return ", on " + report.Few(all, 4, ", ") + " too"
}
