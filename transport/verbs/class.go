package verbs

import "weft/internal/knob"

// Class is the service level and traffic class of what a side sends, from the
// knobs and the traffic class that NCCL gave (-1: none), which is a service
// level too if it fits into one.
func (p *Provider) Class(trafficClass int32) (sl, tc uint8) {
	const maxSL, maxTC = 15, 255
	pick := func(id knob.ID, most int32) uint8 {
		switch n := p.lib.Knobs.Int(id); {
		case n >= 0:
			return uint8(n)
		case trafficClass >= 0 && trafficClass <= most:
			return uint8(trafficClass)
		}
		return 0
	}
	return pick(knob.IBSL, maxSL), pick(knob.IBTC, maxTC)
}

// ReceiverTC is the traffic class that a receiving side sends with, where the
// sender's is tc.
func (p *Provider) ReceiverTC(tc uint8) uint8 {
	if n := p.lib.Knobs.Int(knob.IBFifoTC); n >= 0 {
		return uint8(n)
	}
	return tc
}
