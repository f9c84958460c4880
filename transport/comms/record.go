package comms

import (
	"weft/transport/carrier"
	"weft/transport/fastpath"
	"weft/transport/record"
	"weft/transport/record/format"
	"weft/transport/session"
)

// recorded keeps what a trace needs of c: both ends, and what they both call it.
func (c *Comm) recorded(m *session.Member) {
	if !record.On() {
		return
	}
	flags := uint32(format.Sends | format.OverTCP)
	if c.kind == fastpath.Recv {
		flags = format.Receives | format.OverTCP
	}
	if _, is := c.carrier.(carrier.OneSided); is {
		flags += format.OverRDMA - format.OverTCP
	}
	record.Keep(format.Record{
		Kind: format.Link, ID: uint64(c.handle), Flags: flags, A: m.ID,
		B: uint64(record.Name(c.dev.Name)) | uint64(record.Name(c.peer))<<32, C: c.host.CommID,
	}, false)
}
