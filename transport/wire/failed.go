package wire

// Failed says that this comm has failed on the sender's side, and why.
type Failed struct {
	Header
	Reason string
}

// Append writes m.
func (m *Failed) Append(dst []byte) []byte {
	start := len(dst)
	dst = m.begin(dst, KindFailed)
	return finish(appendText(dst, m.Reason, maxReason), start)
}

// ParseFailed reads a failed.
func ParseFailed(frame []byte) (Failed, error) {
	h, c, err := open(frame, KindFailed)
	if err != nil {
		return Failed{}, err
	}
	m := Failed{Header: h, Reason: c.text(maxReason)}
	if !c.done() {
		return Failed{}, malformed("failed", "reason does not fill its %d bytes", len(frame))
	}
	return m, nil
}
