package transport

import (
	"context"

	"weft/transport/carrier"
	"weft/transport/fastpath"
	"weft/transport/rendezvous"
	"weft/transport/session"
	"weft/transport/tcp"
	"weft/transport/wire"
)

// ways are how a comm may be carried, the best first: each provider's part of a
// connect, between the listening side's lanes and go. The last one always serves.
// The listening side's parts are in handshake.last.
var ways = []func(*connector, context.Context, *dialogue) (*made, error){(*connector).offer, (*connector).overStreams}

// dialogue is a connect whose sides have greeted one another.
type dialogue struct {
	session *session.Session
	won     *rendezvous.Won
	peer    string
	wants   *wants
	options tcp.Options // of the streams
	last    wire.Go     // what it is to say
}

// made is a carrier that has no comm yet.
type made struct {
	by   carrier.Carrier
	drop func() // ends what by was made of
}

// overStreams opens the comm's further streams.
func (k *connector) overStreams(ctx context.Context, d *dialogue) (*made, error) {
	conns, err := k.streams(ctx, d.won, d.wants.streams, d.options)
	drop := func() {
		for _, c := range conns {
			c.Close()
		}
	}
	if err != nil {
		drop()
		return nil, err
	}
	return &made{k.ctx.overTCP(k.dev, fastpath.Send, d.peer, conns, d.wants.stash), drop}, nil
}
