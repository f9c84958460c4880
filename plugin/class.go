package plugin

import (
	"weft/abi"
	"weft/internal/report"
)

const maxTrafficClass = 255 // one byte of a packet's header

// class is the traffic class of a configuration, "none" without one. What no
// packet can carry is left out, which a context says once.
func (c *netCtx) class(config *abi.NetCommConfig) int32 {
	switch {
	case config == nil || config.TrafficClass < 0:
		return abi.NCCL_NET_TRAFFIC_CLASS_UNDEF
	case config.TrafficClass > maxTrafficClass:
		c.oddClass.Do(func() {
			report.Say(c.log, report.Errorf(report.Usage, "init", "traffic class %d is not used: a packet has room for 0 to %d", config.TrafficClass, maxTrafficClass).
				Try("give a DSCP times 4 as trafficClass of ncclConfig_t"))
		})
		return abi.NCCL_NET_TRAFFIC_CLASS_UNDEF
	}
	return config.TrafficClass
}
