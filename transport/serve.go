package transport

import (
	"errors"
	"fmt"

	"weft/transport/carrier"
	"weft/transport/rendezvous"
	"weft/transport/wire"
)

// last serves a comm's first stream from frame 3 to go. What a way makes takes the
// place of what was made before; the carrier that go takes up is in's from then on.
func (h *handshake) last(in *inbound) error {
	a := &carrier.Arrival{For: in.comm(), From: in.from(), Conn: h.conn, Says: h.says, Patience: in.patience, Fail: in.fail}
	var held *carrier.Made
	var by carrier.Asking // what made it
	discard := func() {
		if held != nil {
			held.Drop()
			held = nil
		}
	}
	defer func() { discard() }()
	frame, err := h.conn.FrameBehind(wire.Frame3Size, func(proof []byte) error {
		err := h.confirms(proof)
		if err == nil {
			in.proven.Store(true)
		}
		return err
	})
	switch {
	case errors.Is(err, errNoConfirm):
		return &streamError{err}
	case err != nil && rendezvous.PeerGone(err) && !in.proven.Load():
		return &streamError{rendezvous.ErrWithdrawn}
	}
	for asked := 0; ; asked++ {
		if err != nil {
			return &streamError{fmt.Errorf("waiting for go: %w", err)}
		}
		way, most := h.asked(wire.KindOf(frame))
		if way == nil {
			m, err := wire.ParseGo(frame)
			if err != nil {
				return err
			}
			taken := h.taken(&m)
			if by != taken {
				discard()
			}
			if taken != nil && held == nil {
				return fmt.Errorf("go takes up an offer that was not accepted: %w", wire.ErrMalformed)
			}
			if taken == nil {
				if err := h.spared(a, &m); err != nil {
					in.fail(err)
					return err
				}
			}
			in.goes(m, h.conn, held)
			held = nil
			return nil
		}
		discard()
		if by = way; asked == most {
			return fmt.Errorf("more than %d frames of kind %d: %w", most, wire.KindOf(frame), wire.ErrMalformed)
		}
		if held, err = way.Reply(a, frame); err != nil {
			return err
		}
		frame, err = h.conn.Frame()
	}
}

// asked is the way whose connecting side asks by frames of a kind, and how many
// of them there may be; nil: none.
func (h *handshake) asked(kind wire.Kind) (carrier.Asking, int) {
	for _, w := range h.ways {
		if way, is := w.(carrier.Asking); is {
			if k, most := way.Asks(); k == kind {
				return way, most
			}
		}
	}
	return nil, 0
}

// taken is the way that a go takes, on either side; nil: the plain one. Another than that does not use the comm's first
// stream, which ends.
func (e *env) taken(m *wire.Go) carrier.Asking {
	for _, w := range e.ways {
		if way, is := w.(carrier.Asking); is && m.Flags&way.Takes() != 0 {
			return way
		}
	}
	return nil
}

// spared tells the other ways of a go that takes the plain one.
func (h *handshake) spared(a *carrier.Arrival, m *wire.Go) error {
	for _, w := range h.ways {
		if way, is := w.(carrier.Asking); is {
			if err := way.Spared(a, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// streamError is a failure of a comm's first stream, after which there is nothing
// to say on it.
type streamError struct{ error }

func (e *streamError) Unwrap() error { return e.error }
