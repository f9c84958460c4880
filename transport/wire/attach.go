package wire

// Attach binds a comm to the session that carries it: Nonce is the one that won
// the comm's handshake.
type Attach struct {
	Header
	Nonce Nonce
}

// Append writes m.
func (m *Attach) Append(dst []byte) []byte {
	start := len(dst)
	dst = m.begin(dst, KindAttach)
	return finish(append(dst, m.Nonce[:]...), start)
}

// ParseAttach reads an attach.
func ParseAttach(frame []byte) (Attach, error) {
	h, c, err := open(frame, KindAttach)
	if err != nil {
		return Attach{}, err
	}
	m := Attach{Header: h}
	c.copy(m.Nonce[:])
	if !c.done() {
		return Attach{}, malformed("attach", "%d bytes", len(frame))
	}
	return m, nil
}
