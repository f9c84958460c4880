package wire

const maxReason = 512

// Reject ends a handshake after the proof and says why; it takes the place of
// the message that the sender owed.
type Reject struct {
	Header
	Reason string
}

// Append writes m.
func (m *Reject) Append(dst []byte) []byte {
	start := len(dst)
	dst = m.begin(dst, KindReject)
	return finish(appendText(dst, m.Reason, maxReason), start)
}

// ParseReject reads a reject.
func ParseReject(frame []byte) (Reject, error) {
	h, c, err := open(frame, KindReject)
	if err != nil {
		return Reject{}, err
	}
	m := Reject{Header: h, Reason: c.text(maxReason)}
	if !c.done() {
		return Reject{}, malformed("reject", "reason does not fill its %d bytes", len(frame))
	}
	return m, nil
}
