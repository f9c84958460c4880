package lanes

import (
	"slices"

	"weft/transport/fastpath"
	"weft/transport/route"
)

// begin is what lanes have before anything is known of them.
func (v *Carrier) begin(over []*route.Pair) []float64 {
	if v.shared.striping() == "even" {
		return slices.Repeat([]float64{1}, len(over))
	}
	return route.Speeds(over)
}

// measures reports whether v's lanes share by what they are seen to do.
func (v *Carrier) measures() bool {
	return v.Kind == fastpath.Send && v.Tuning.Width > 1 && v.shared.striping() == "measured"
}

// stripe is the watch's turn for v, which carries a comm.
func (v *Carrier) stripe() {
	if !v.measures() {
		return
	}
	if w := v.stripes.Turn(v.fp.LaneRates(nil), route.Speeds(*v.routes.Load())); w != nil {
		_ = v.fp.SetWeights(w) // it fails only where further lanes have come meanwhile: then the next turn does it
	}
}
