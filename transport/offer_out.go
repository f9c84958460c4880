package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"weft/internal/knob"
	"weft/transport/fastpath"
	"weft/transport/rdma"
	"weft/transport/verbs"
	"weft/transport/wire"
)

// offer tries to have the comm carried by RDMA: a few pairs of ports, each made,
// connected and proven. nil without an error means TCP, and a line says why if
// both sides have RDMA. An error is one of the comm's first stream.
func (k *connector) offer(ctx context.Context, s *session, w *won, peer *wire.Hello) (*verbsCarrier, error) {
	var tried []string
	for _, pair := range k.core.verbsPairs(k.dev, s.devices, peer.Device) {
		err := s.failedPair(pair)
		if err == nil {
			var v *verbsCarrier
			began := time.Now()
			if v, err = k.tryPair(ctx, w, endName(peer, w.conn), pair); err == nil {
				return v, nil
			}
			s.pairFailed(pair, time.Since(began), err)
		}
		tried = append(tried, fmt.Sprintf("%s to its device %d (%v): %v", pair.local.Name, pair.peerIndex, pair.reach, err))
		if lost := (*streamError)(nil); errors.As(err, &lost) {
			return nil, lost.error
		}
	}
	if k.dev.Verbs != nil {
		why := "the peer has no RDMA device that shares a subnet with one here, or was asked for and can be routed to"
		if len(tried) > 0 {
			why = strings.Join(tried, "; ")
		}
		k.ctx.opts.Log.Info(rdma.Net, "%s -> %s goes over TCP, not by RDMA: %s", k.dev.Name, endName(peer, w.conn), why)
	}
	return nil, nil
}

// streamError is a failure of the stream that offers travel on, after which
// there is nothing to try.
type streamError struct{ error }

func (e *streamError) Unwrap() error { return e.error }

// tryPair makes this side's lanes, has the peer make its own, and proves that
// bytes arrive. Whatever fails leaves nothing behind here; the peer discards its
// lanes when it reads what comes next.
func (k *connector) tryPair(ctx context.Context, w *won, peer string, pair verbsPair) (_ *verbsCarrier, err error) {
	v, err := openVerbs(k.ctx, k.dev, fastpath.Send, peer, pair, k.core.lanes())
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			v.discard()
		}
	}()
	sl, tc := k.core.cfg.Verbs.Class(k.trafficClass)
	m := wire.Offer{SL: sl, TC: tc}
	m.Shared, m.Keys, m.Lanes = v.ends()
	answer, err := exchangeOffer(ctx, w.conn, &m, k.core.timeout)
	if err != nil {
		return nil, &streamError{err}
	}
	if answer.Reason != "" {
		return nil, fmt.Errorf("the peer refuses: %s", answer.Reason)
	}
	if err := sameEnds(answer.Lanes, len(m.Lanes), pair.peerIndex, pair.localIndex, pair.gid); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, k.core.offerLimit())
	defer cancel()
	if err := v.connect(ctx, answer.Shared, answer.Keys, answer.Lanes, sl, tc); err != nil {
		return nil, err
	}
	if err := v.prove(ctx); err != nil {
		return nil, err
	}
	return v, nil
}

// A pair whose failure took so long that it must not be paid for each of a
// host's hundreds of connects is left alone for a while.
const (
	slowFailure = 500 * time.Millisecond
	pairRest    = 30 * time.Second
)

// brokenPair is a pair of ports that did not work.
type brokenPair struct {
	at  time.Time
	why error
}

func (s *session) pairFailed(p verbsPair, took time.Duration, why error) {
	if lost := (*streamError)(nil); took < slowFailure || errors.As(why, &lost) {
		return // that says nothing of the pair
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broke == nil {
		s.broke = map[[2]uint16]brokenPair{}
	}
	s.broke[[2]uint16{p.localIndex, p.peerIndex}] = brokenPair{time.Now(), why}
}

// failedPair is why a pair is not tried again so soon; nil: it may be tried.
func (s *session) failedPair(p verbsPair) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.broke[[2]uint16{p.localIndex, p.peerIndex}]
	if ago := time.Since(b.at); ok && ago < pairRest {
		return fmt.Errorf("it failed %v ago: %w", ago.Round(time.Second), b.why)
	}
	return nil
}

// offerLimit bounds what either side spends on the lanes of one offer, so that
// a peer that waits for the answer, and then for TCP, does not give up first.
func (c *Core) offerLimit() time.Duration { return c.timeout / 4 }

func exchangeOffer(ctx context.Context, c *conn, m *wire.Offer, limit time.Duration) (wire.Answer, error) {
	c.SetDeadline(time.Now().Add(limit))
	if ctx.Err() != nil { // it may have cut the connection before the deadline was set anew
		return wire.Answer{}, context.Cause(ctx)
	}
	if _, err := c.Write(m.Append(nil)); err != nil {
		return wire.Answer{}, fmt.Errorf("sending an offer: %w", err)
	}
	frame, err := readFrame(c)
	if err != nil {
		return wire.Answer{}, fmt.Errorf("waiting for the answer to an offer: %w", err)
	}
	return wire.ParseAnswer(frame)
}

// readFrame reads one message and not a byte more: on a comm's first stream
// data may follow.
func readFrame(c *conn) ([]byte, error) {
	b := make([]byte, wire.HeaderSize)
	if _, err := io.ReadFull(c, b); err != nil {
		return nil, err
	}
	n, err := wire.FrameLength(b)
	if err != nil || n == len(b) {
		return b, err
	}
	b = append(b, make([]byte, n-len(b))...)
	_, err = io.ReadFull(c, b[wire.HeaderSize:])
	return b, err
}

// sameEnds checks that all lanes of a message run between two ports that belong
// together, device being the sender's.
func sameEnds(lanes []wire.QPEnd, n int, device, peer uint16, gid verbs.GID) error {
	if len(lanes) != n {
		return fmt.Errorf("%d lanes for %d: %w", len(lanes), n, wire.ErrMalformed)
	}
	for i, e := range lanes {
		if e.Device != device || e.Peer != peer {
			return fmt.Errorf("lane %d of %d runs from device %d to %d, not from %d to %d: %w", i, n, e.Device, e.Peer, device, peer, wire.ErrMalformed)
		}
		if theirs := verbsGID(e.GID); gid.Reaches(theirs) == verbs.Unreachable {
			return fmt.Errorf("lane %d of %d: %v cannot be reached from %v", i, n, theirs, gid)
		}
	}
	return nil
}

// lanes is how many queue pairs a comm gets.
func (c *Core) lanes() int {
	n := int(c.cfg.Knobs.Int(knob.IBQPsPerConnection))
	if n > wire.MaxLanes {
		c.manyLanes.Do(func() {
			c.cfg.Log.Warn("NCCL_IB_QPS_PER_CONNECTION=%d is more than a connection can have; it gets %d", n, wire.MaxLanes)
		})
	}
	return max(1, min(n, wire.MaxLanes))
}
