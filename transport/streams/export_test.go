package streams

import (
	"weft/transport/carrier"
	"weft/transport/device"
)

// NewCarrier carries a comm over streams that are not there, each over one of some paths.
func NewCarrier(c carrier.Comm, dev *device.Device, peer string, paths []string, pathOf []int) *Carrier {
	return &Carrier{comm: c, opts: options{For: carrier.For{Device: dev, Peer: peer}}, paths: paths, pathOf: pathOf}
}
