package transport

import (
	"fmt"
	"strings"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/wire"
)

// sayRails says once for a connection which of its pairs join devices that
// differ in name or rail, if NCCL_IB_WARN_RAIL_LOCAL asks for it.
func (k *connector) sayRails(peer string, pairs []verbsPair, devices []wire.Device) {
	if k.core.cfg.Knobs.Int(knob.IBWarnRailLocal) == 0 {
		return
	}
	var mixed []string
	for i := range pairs {
		p := &pairs[i]
		for _, d := range devices {
			if d.Index == p.peerIndex && (d.Name != p.local.Name || d.Rail != p.local.RailID) {
				mixed = append(mixed, fmt.Sprintf("%s (rail %d) here and %s (rail %d) there", p.local.Name, p.local.RailID, d.Name, d.Rail))
			}
		}
	}
	if len(mixed) > 0 {
		k.ctx.opts.Log.Info(report.Net, "%s -> %s leaves its rail: %s; NCCL_IB_WARN_RAIL_LOCAL=0 hides this", k.dev.Name, peer, strings.Join(mixed, ", "))
	}
}
