package wire

// KeySize is the length of a session's key.
const KeySize = 32

// Session is what the listening side grants on a new control connection: the id
// (Header.Session) and the key by which the connecting side may later reopen it.
type Session struct {
	Header
	Key [KeySize]byte
}

// Append writes m.
func (m *Session) Append(dst []byte) []byte {
	start := len(dst)
	dst = m.begin(dst, KindSession)
	return finish(append(dst, m.Key[:]...), start)
}

// ParseSession reads a session.
func ParseSession(frame []byte) (Session, error) {
	h, c, err := open(frame, KindSession)
	if err != nil {
		return Session{}, err
	}
	m := Session{Header: h}
	c.copy(m.Key[:])
	if !c.done() || h.Session == 0 {
		return Session{}, malformed("session", "id %d in %d bytes", h.Session, len(frame))
	}
	return m, nil
}
