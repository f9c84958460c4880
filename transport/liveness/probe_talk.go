package liveness

import (
	"errors"
	"fmt"

	"weft/internal/report"
	"weft/transport/session"
	"weft/transport/verbs/qp"
	"weft/transport/wire"
)

// Serve acts on a message about a probe.
func (w *Watcher) Serve(s *session.Session, b []byte) error {
	wrong := func(k wire.Kind) error { return fmt.Errorf("%s from the wrong side: %w", k, wire.ErrMalformed) }
	switch k := wire.KindOf(b); k {
	case wire.KindProbeOffer:
		m, err := wire.ParseProbeOffer(b)
		if err != nil {
			return err
		}
		if s.Active {
			return wrong(k)
		}
		if err := w.offered(s, &m); err != nil {
			s.TellLater(&wire.ProbeState{Number: m.Number, State: wire.ProbeGone, Reason: err.Error()})
		}
	case wire.KindProbeAnswer:
		m, err := wire.ParseProbeAnswer(b)
		if err != nil {
			return err
		}
		if !s.Active {
			return wrong(k)
		}
		w.answered(s, &m)
	default:
		m, err := wire.ParseProbeState(b)
		if err != nil {
			return err
		}
		if s.Active && m.State == wire.ProbeWorks {
			return wrong(k)
		}
		w.told(s, &m)
	}
	return nil
}

// offered makes this side of a probe between ports that a comm of s uses.
func (w *Watcher) offered(s *session.Session, m *wire.ProbeOffer) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := key{s, m.End.Peer, m.End.Device, Class{m.SL, m.TC}}
	pair := w.pairFor(k)
	if pair == nil {
		return errors.New("no connection of that class runs between these ports")
	}
	if old := w.probes[k]; old != nil {
		if old.end == nil {
			return errors.New("an earlier one is being made, or ended")
		}
		old.cancel(errReplaced)
	}
	p := w.newProbe(k, pair)
	p.number = m.Number
	go p.follow(m)
	return nil
}

// answered hands the peer's end to whoever waits for it.
func (w *Watcher) answered(s *session.Session, m *wire.ProbeAnswer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.numbered(s, m.Number); p != nil {
		select {
		case p.answers <- m.End:
		default: // it answers twice
		}
	}
}

// told takes in what became of the peer's end.
func (w *Watcher) told(s *session.Session, m *wire.ProbeState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.numbered(s, m.Number)
	switch {
	case p == nil:
	case m.State == wire.ProbeWorks:
		p.works = p.end != nil
	case m.State == wire.ProbeSilent:
		p.giveUp(&qp.Unanswered{Err: report.Errorf(report.Network, "probe", "the peer asked: %s", m.Reason).
			Try("look at the peer's log, and at the network between these ports")})
	default:
		p.giveUp(fmt.Errorf("%w: %s", errEndedThere, m.Reason))
	}
}

// numbered finds a probe by what its offer was numbered; w.mu is held.
func (w *Watcher) numbered(s *session.Session, number uint32) *probe {
	for k, p := range w.probes {
		if k.session == s && p.number == number {
			return p
		}
	}
	return nil
}
