package carrier

import (
	"context"

	"weft/internal/report"
	"weft/transport/device"
	"weft/transport/fastpath"
	"weft/transport/rdma"
	"weft/transport/rendezvous"
	"weft/transport/session"
	"weft/transport/wire"
)

// Way is a provider's part of a connect: what a listen has for it, and how the
// two sides come to have a carrier each, between lanes and go.
type Way interface {
	// Listen is why there must be no listen on dev; nil: there may.
	Listen(dev *device.Device) error
	// Lanes adds what a listen on dev has for the way, for the connecting side's Connect.
	Lanes(dev *device.Device, m *wire.Lanes)
	// Connect makes the connecting side's carrier. Without one and an error the way
	// does not serve this comm, and the next is tried.
	Connect(ctx context.Context, c *Call) (*Made, error)
}

// Plain is the way that is left when no other serves: the listening side's carrier
// is made of the comm's own streams.
type Plain interface {
	Way
	Accept(f *For, conns []*rendezvous.Conn) (Carrier, error)
}

// Asking is a way whose Connect has the listening side make its carrier, by frames
// on the comm's first stream, which both sides close when a go takes it up.
type Asking interface {
	Way
	// Asks is the kind of these frames, and how many a connect may send.
	Asks() (kind wire.Kind, most int)
	// Reply replies to one. What it makes takes the place of what it made before.
	Reply(a *Arrival, frame []byte) (*Made, error)
	// Takes is the flag of the go that takes up what was made last.
	Takes() uint16
	// Spared is told of a go that takes the plain way. An error: there must be no comm then.
	Spared(a *Arrival, last *wire.Go) error
}

// For is what is known of the comm that a carrier is made for.
type For struct {
	Log          report.Logger    // of the comm's context
	Cuts         bool             // the host counts on RDMA to cut a send to its receive
	Hints        func() rdma.Attr // what the host has said last about the work to come
	NetEvents    uintptr          // the host's callback for them, or 0
	Device       *device.Device   // as the host asked
	Kind         fastpath.Kind
	Peer         string
	TrafficClass int32         // -1: none given
	Reserve      func() uint64 // draws a name for the comm, by which the executor knows it
}

// Call is a connect whose sides have greeted one another.
type Call struct {
	For
	Session *session.Session
	Handle  *wire.Handle    // where the listening side is found
	Won     *rendezvous.Won // the comm's first stream
	Wants   wire.Lanes      // what the listening side has for it
	Go      wire.Go         // what the connecting side is to say
}

// Arrival is the listening side of one.
type Arrival struct {
	For
	From     wire.ProcessID   // the connecting process
	Conn     *rendezvous.Conn // the comm's first stream
	Says     func() bool      // it may have one more line in the log
	Patience func()           // gives it the full time for one more try
	Fail     func(error)      // ends it, and has accept say why
}

// Made is a carrier that has no comm yet.
type Made struct {
	By   Carrier
	Drop func() // ends what By was made of
}
