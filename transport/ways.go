package transport

import (
	"weft/transport/carrier"
	"weft/transport/lanes"
	"weft/transport/offers"
)

// ways are how a comm may be carried, the best first: a line for each provider.
// The last one always serves.
func ways(e *env, queues *lanes.Shared, plain carrier.Plain) []carrier.Way {
	return []carrier.Way{
		&offers.Way{Knobs: e.cfg.Knobs, Log: e.cfg.Log, Provider: e.cfg.Verbs, NoVerbs: e.cfg.NoVerbs, Devices: e.devices, Queues: queues, Sessions: e.sessions},
		plain,
	}
}
