package port

import (
	"math/bits"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/verbs/card"
	"weft/transport/verbs/fail"
	"weft/transport/verbs/ibv"
)

// Mb/s of one lane, by the lowest bit that is set in active_speed_ex, else in
// active_speed; beyond the table the last one counts.
var laneMbps = [...]int{
	2500,   // SDR
	5000,   // DDR
	10000,  // QDR
	10000,  // FDR10
	14000,  // FDR
	25000,  // EDR
	50000,  // HDR
	100000, // NDR
	200000, // XDR
}

// lanes by the lowest bit of active_width; beyond the table the last one counts.
var laneCounts = [...]int{1, 4, 8, 12, 2}

// tableSpeed is Mb/s from what the port says of its lanes.
func tableSpeed(a *ibv.PortAttr) int {
	speed := uint32(a.ActiveSpeed)
	if a.ActiveSpeedEx != 0 {
		speed = a.ActiveSpeedEx
	}
	return laneMbps[min(bits.TrailingZeros32(speed), len(laneMbps)-1)] * laneCounts[min(bits.TrailingZeros8(a.ActiveWidth), len(laneCounts)-1)]
}

// speed is Mb/s as the library says, else from what the port says of its lanes.
func speed(c *card.Card, port uint8, attr *ibv.PortAttr) int {
	if c.Lib.Knobs.Int(knob.IBQueryPortSpeed) != 0 && !c.Lib.Lacks["ibv_query_port_speed"] {
		speed, errno := c.Lib.QueryPortSpeed(c.Context(), port)
		if errno == 0 && speed > 0 {
			return int(speed) * 100
		}
		if errno != 0 && !fail.Unsupported(errno) {
			c.Lib.Log.Info(report.Net, "%v", fail.Call("ibv_query_port_speed", c.Name, errno, "port %d is taken for as fast as its lanes", port))
		}
	}
	return tableSpeed(attr)
}
