package offers

import (
	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/device"
	"weft/transport/route"
	"weft/transport/session"
	"weft/transport/wire"
)

var (
	PortPairs = portPairs
	NumberOf  = numberOf
	WithPeer  = withPeer
)

// LanesFor is how many queue pairs a comm over so many pairs of ports gets.
func (w *Way) LanesFor(pairs int) int { return w.lanesFor(pairs) }

// MayUseTCP is why a comm of dev must not go over TCP.
func (w *Way) MayUseTCP(dev *device.Device) error {
	return w.mayUseTCP("accept", dev, "host1 (10.0.0.2)", "no cable")
}

// AgreeOnOrder is why the listening side cannot have what it is offered; final: there is no connection then.
func (w *Way) AgreeOnOrder(pairs []route.Pair, offered bool) (final bool, err error) {
	err = w.agreeOnOrder(pairs, offered)
	_, final = err.(*finalError)
	return final, err
}

// Refuses is the answer to an offer that why keeps from being taken, which a log may get a line of.
func Refuses(m *wire.Offer, why error, log report.Logger, says bool) (wire.Answer, error) {
	a := &taker{&Way{}, &carrier.Arrival{For: carrier.For{Log: log, Device: &device.Device{}, Peer: "host1"}, Says: func() bool { return says }}}
	return a.refuses(m, why)
}

// Final is an error after which there must be no connection.
func Final(why error) error { return &finalError{why} }

// Hears is how the connecting side hears a refusal, and whether it ends the connect.
func Hears(reason string, last bool) (final bool, err error) {
	err = refused(reason, last)
	_, final = err.(*finalError)
	return final, err
}

// TellOtherPorts tells over which pairs of ports a connection of dev runs that was to run to the peer's devices asked.
func (w *Way) TellOtherPorts(dev *device.Device, log report.Logger, devices []wire.Device, pairs []route.Pair, asked []uint16, tried ...string) {
	c := &caller{w, &carrier.Call{For: carrier.For{Log: log, Device: dev, Peer: "host1"}, Session: &session.Session{Devices: devices}}}
	c.tellOtherPorts(pairs, asked, tried)
}
