package wire

// Closed says that the sender's host closed this comm in good order: its streams
// end after the last byte, and the end of the session no longer concerns it.
type Closed struct {
	Header
}

// Append writes m.
func (m *Closed) Append(dst []byte) []byte {
	start := len(dst)
	return finish(m.begin(dst, KindClosed), start)
}

// ParseClosed reads a closed.
func ParseClosed(frame []byte) (Closed, error) {
	h, c, err := open(frame, KindClosed)
	if err != nil {
		return Closed{}, err
	}
	if !c.done() {
		return Closed{}, malformed("closed", "%d bytes", len(frame))
	}
	return Closed{Header: h}, nil
}
