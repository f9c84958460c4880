package transport

import (
	"slices"
	"sync"
	"testing"

	"weft/internal/simverbs"
	"weft/transport/session"
	"weft/transport/verbs/qp"
	"weft/transport/wire"
)

// What these tests know of probes is what the two sides say of them, and what the simulated devices have.

// probe is one that works, as one side has it.
type probe struct {
	on     *session.Session
	number uint32
	offer  wire.ProbeOffer // to the listening side
	qp     simverbs.QP
	asked  bool // since it was proven
}

// probing is what a process hears of probes.
type probing struct {
	mu   sync.Mutex
	all  []*heardOf // protected by mu, as below
	gone []uint32   // numbers of which the peer has said that its end is gone
}

// heardOf is a probe of which the peer has said what its queue pair is.
type heardOf struct {
	probe
	peer  uint32
	works bool // the connecting side says so
}

// hears has p keep what it hears of probes.
func (p *process) hears() {
	h := &p.probing
	note := func(kind wire.Kind, take func(s *session.Session, frame []byte)) {
		act := p.serve[kind]
		p.serve[kind] = func(s *session.Session, frame []byte) error {
			err := act(s, frame)
			if err == nil {
				h.mu.Lock()
				defer h.mu.Unlock()
				take(s, frame)
			}
			return err
		}
	}
	note(wire.KindProbeOffer, func(s *session.Session, frame []byte) {
		m, _ := wire.ParseProbeOffer(frame)
		h.all = append(h.all, &heardOf{probe: probe{on: s, number: m.Number, offer: m}, peer: m.End.QPN})
	})
	note(wire.KindProbeAnswer, func(s *session.Session, frame []byte) {
		m, _ := wire.ParseProbeAnswer(frame)
		h.all = append(h.all, &heardOf{probe: probe{on: s, number: m.Number}, peer: m.End.QPN})
	})
	note(wire.KindProbeState, func(s *session.Session, frame []byte) {
		m, _ := wire.ParseProbeState(frame)
		if m.State == wire.ProbeGone {
			h.gone = append(h.gone, m.Number)
		}
		for _, x := range h.all {
			if x.on == s && x.number == m.Number && m.State == wire.ProbeWorks {
				x.works = true
			}
		}
	})
}

// toldOf reports whether p has been told that the peer's end of a probe is gone.
func (p *process) toldOf(number uint32) bool {
	p.probing.mu.Lock()
	defer p.probing.mu.Unlock()
	return slices.Contains(p.probing.gone, number)
}

// working are the probes of p that work: a proof has passed.
func (p *process) working(t testing.TB) (all []probe) {
	t.Helper()
	var here []simverbs.QP
	for _, d := range p.cfg.Verbs.Devices() {
		here = append(here, qpsOn(t, d.Name)...)
	}
	p.probing.mu.Lock()
	defer p.probing.mu.Unlock()
	for _, x := range p.probing.all {
		i := slices.IndexFunc(here, func(q simverbs.QP) bool { return q.Peer == x.peer && q.State == stateRTS })
		if i < 0 {
			continue
		}
		one, proof := x.probe, uint32(0)
		if one.qp = here[i]; x.on.Active { // it has written the proof
			proof = qp.ProofDepth
			x.works = one.qp.Done >= proof
		}
		if one.asked = one.qp.Posted > proof; x.works {
			all = append(all, one)
		}
	}
	return all
}

// probe tells which of its queue pairs the probe of p has now; 0: none that works.
func (p *process) probe(t testing.TB) (number, qpn uint32) {
	t.Helper()
	for _, x := range p.working(t) {
		return x.number, x.qp.Number
	}
	return 0, 0
}

// asked reports whether a probe of p was used since it was proven.
func (p *process) asked(t testing.TB) bool {
	t.Helper()
	return slices.ContainsFunc(p.working(t), func(x probe) bool { return x.asked })
}

// probed waits for the probe of the only pair of ports, before a test plans failures that
// it would meet.
func probed(t *testing.T, a, b *process) {
	t.Helper()
	eventually(t, "a probe on both sides", func() bool { return len(a.working(t)) == 1 && len(b.working(t)) == 1 })
}

// probedPair is a comm between two processes that can ask their path.
func probedPair(t *testing.T, env map[string]string) (a, b *process, s, r *Comm) {
	t.Helper()
	a, b, s, r = simPair(t, env)
	probed(t, a, b)
	return a, b, s, r
}
