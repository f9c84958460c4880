package wire

// Attach binds a comm to the session that carries it: Nonce is the listening
// side's in the comm's handshake, and the proof is by the token of the comm's
// listen, so that another session cannot take the comm.
type Attach struct {
	Header
	Nonce Nonce
	Proof Proof
}

// Sign sets the nonce and the proof; the session and the comm are in the header.
func (m *Attach) Sign(token *Token, f1 *Frame1, f2 *Frame2) {
	m.Nonce = f2.Nonce
	m.Proof = m.proof(token, f1, f2)
}

// Verify reports whether the sender of f1 attaches its comm to that session.
func (m *Attach) Verify(token *Token, f1 *Frame1, f2 *Frame2) bool {
	p := m.proof(token, f1, f2)
	return m.Nonce == f2.Nonce && p.Equal(&m.Proof)
}

func (m *Attach) proof(token *Token, f1 *Frame1, f2 *Frame2) Proof {
	b := f1.labelled(labelAttach)
	return prove(token, le.AppendUint64(le.AppendUint64(append(b, f2.Nonce[:]...), m.Session), m.Comm))
}

// Append writes m.
func (m *Attach) Append(dst []byte) []byte {
	start := len(dst)
	dst = m.begin(dst, KindAttach)
	return finish(append(append(dst, m.Nonce[:]...), m.Proof[:]...), start)
}

// ParseAttach reads an attach.
func ParseAttach(frame []byte) (Attach, error) {
	h, c, err := open(frame, KindAttach)
	if err != nil {
		return Attach{}, err
	}
	m := Attach{Header: h}
	c.copy(m.Nonce[:])
	c.copy(m.Proof[:])
	if !c.done() {
		return Attach{}, malformed("attach", "%d bytes", len(frame))
	}
	return m, nil
}
