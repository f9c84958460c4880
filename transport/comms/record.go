package comms

import (
	"weft/transport/carrier"
	"weft/transport/fastpath"
	"weft/transport/meter"
	"weft/transport/record"
	"weft/transport/record/format"
	"weft/transport/rendezvous"
	"weft/transport/session"
)

// recorded keeps what a trace needs of c: its two devices, and what both sides call it.
func (c *Comm) recorded(m *session.Member) {
	if !record.On() {
		return
	}
	record.Keep(format.Record{
		Kind: format.Link, ID: uint64(c.handle), Flags: c.flags(), A: m.ID,
		B: uint64(record.Name(c.dev.Name)) | uint64(record.Name(c.peer))<<32, C: c.host.CommID,
	}, false)
}

// counted has c's messages counted, where the process counts any.
func (c *Comm) counted(m *session.Member) {
	c.meter = meter.Add(meter.End{
		Flags: c.flags(), Number: m.ID, Device: c.dev.Name,
		Peer: m.Session.Peer.Host, PeerPID: m.Session.Peer.PID, PeerDevice: rendezvous.EndDevice(c.peer),
	})
	if c.meter != nil {
		c.fp.Count(c.meter.Place())
	}
}

// flags are the direction of c, and its network.
func (c *Comm) flags() uint32 {
	flags := uint32(format.Sends | format.OverTCP)
	if c.kind == fastpath.Recv {
		flags = format.Receives | format.OverTCP
	}
	if _, is := c.carrier.(carrier.OneSided); is {
		flags += format.OverRDMA - format.OverTCP
	}
	return flags
}
