package wire

// Bye is the last message of a session whose connecting side has no comm left.
type Bye struct {
	Header
}

// Append writes m.
func (m *Bye) Append(dst []byte) []byte {
	start := len(dst)
	return finish(m.begin(dst, KindBye), start)
}

// ParseBye reads a bye.
func ParseBye(frame []byte) (Bye, error) {
	h, c, err := open(frame, KindBye)
	if err != nil {
		return Bye{}, err
	}
	if !c.done() {
		return Bye{}, malformed("bye", "%d bytes", len(frame))
	}
	return Bye{Header: h}, nil
}
