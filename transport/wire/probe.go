package wire

// ProbeOffer proposes a queue pair that carries no data, between two ports over
// which comms of the session run: either side can ask by it whether packets
// still get through. The connecting side numbers them; a later one replaces
// those before it between the same ports.
type ProbeOffer struct {
	Header
	Number uint32
	SL, TC uint8
	End    QPEnd
}

// ProbeAnswer accepts an offer, with the other end. A state refuses it.
type ProbeAnswer struct {
	Header
	Number uint32
	End    QPEnd
}

// ProbeState says what became of the sender's end of a probe. Reason is empty
// when it works.
type ProbeState struct {
	Header
	Number uint32
	State  uint8
	Reason string
}

// The states of a probe that the other side must know.
const (
	ProbeWorks  = 1 // it was proven and may be used
	ProbeGone   = 2 // it is not there any more, which proves nothing
	ProbeSilent = 3 // it was used, no acknowledgement came, and it is gone
)

// Append writes m.
func (m *ProbeOffer) Append(dst []byte) []byte {
	start := len(dst)
	dst = le.AppendUint32(m.begin(dst, KindProbeOffer), m.Number)
	return finish(m.End.append(append(dst, m.SL, m.TC)), start)
}

// ParseProbeOffer reads a probe offer.
func ParseProbeOffer(frame []byte) (ProbeOffer, error) {
	h, c, err := open(frame, KindProbeOffer)
	if err != nil {
		return ProbeOffer{}, err
	}
	m := ProbeOffer{Header: h, Number: c.u32(), SL: c.u8(), TC: c.u8()}
	m.End = c.qpEnd()
	if !c.done() || m.SL > maxSL {
		return ProbeOffer{}, malformed("probe offer", "SL %d, end %+v in %d bytes", m.SL, m.End, len(frame))
	}
	return m, nil
}

// Append writes m.
func (m *ProbeAnswer) Append(dst []byte) []byte {
	start := len(dst)
	dst = le.AppendUint32(m.begin(dst, KindProbeAnswer), m.Number)
	return finish(m.End.append(dst), start)
}

// ParseProbeAnswer reads a probe answer.
func ParseProbeAnswer(frame []byte) (ProbeAnswer, error) {
	h, c, err := open(frame, KindProbeAnswer)
	if err != nil {
		return ProbeAnswer{}, err
	}
	m := ProbeAnswer{Header: h, Number: c.u32()}
	m.End = c.qpEnd()
	if !c.done() {
		return ProbeAnswer{}, malformed("probe answer", "end %+v in %d bytes", m.End, len(frame))
	}
	return m, nil
}

// Append writes m.
func (m *ProbeState) Append(dst []byte) []byte {
	start := len(dst)
	dst = le.AppendUint32(m.begin(dst, KindProbeState), m.Number)
	return finish(appendText(append(dst, m.State), m.Reason, maxReason), start)
}

// ParseProbeState reads a probe state.
func ParseProbeState(frame []byte) (ProbeState, error) {
	h, c, err := open(frame, KindProbeState)
	if err != nil {
		return ProbeState{}, err
	}
	m := ProbeState{Header: h, Number: c.u32(), State: c.u8(), Reason: c.text(maxReason)}
	works := m.State == ProbeWorks
	if !c.done() || m.State < ProbeWorks || m.State > ProbeSilent || works != (m.Reason == "") {
		return ProbeState{}, malformed("probe state", "state %d, reason %q in %d bytes", m.State, m.Reason, len(frame))
	}
	return m, nil
}
