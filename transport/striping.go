package transport

import (
	"slices"

	"weft/internal/knob"
	"weft/transport/fastpath"
	"weft/transport/route"
)

// begin is what lanes have before anything is known of them.
func (v *verbsCarrier) begin(over []*route.Pair) []float64 {
	if v.striping() == "even" {
		return slices.Repeat([]float64{1}, len(over))
	}
	return route.Speeds(over)
}

func (v *verbsCarrier) striping() string {
	if mode := v.ctx.core.cfg.Knobs.Text(knob.Striping); mode != "" {
		return mode
	}
	return "measured"
}

// measures reports whether v's lanes share by what they are seen to do.
func (v *verbsCarrier) measures() bool {
	return v.kind == fastpath.Send && v.tuning.Width > 1 && v.striping() == "measured"
}

// stripe is the watch's turn for v, which carries a comm.
func (v *verbsCarrier) stripe() {
	if !v.measures() {
		return
	}
	if w := v.stripes.Turn(v.fp.LaneRates(nil), route.Speeds(*v.routes.Load())); w != nil {
		_ = v.fp.SetWeights(w) // it fails only where further lanes have come meanwhile: then the next turn does it
	}
}
