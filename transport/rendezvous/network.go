package rendezvous

import (
	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/task"
	"weft/transport/tcp"
)

// Network is what all TCP connections of a process share.
type Network struct {
	knobs      *knob.Values
	log        report.Logger
	interfaces []*tcp.Device // what rendezvous and control connections run on
	Origin     uint8         // the mark of this network stack in handles; 0: unknown

	Local  LocalAddrs
	Narrow NarrowPaths
	Files  task.FileLimit
	table  task.FileTable
}

// NewNetwork returns the network of a process whose interfaces these are.
func NewNetwork(k *knob.Values, log report.Logger, interfaces []*tcp.Device) *Network {
	return &Network{knobs: k, log: log, interfaces: interfaces, Origin: origin()}
}
