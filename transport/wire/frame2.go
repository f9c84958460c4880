package wire

// Frame2Size is the length of the listening side's answer.
const Frame2Size = NonceSize + ProofSize

// Frame2 answers a verified frame 1: server nonce 16 | HMAC(token, label,
// frame 1's signed part, server nonce) 32. It is the first thing a listener says.
type Frame2 struct {
	Nonce Nonce
	Proof Proof
}

// Sign sets the proof for the frame 1 that f answers.
func (f *Frame2) Sign(token *Token, f1 *Frame1) { f.Proof = f.proof(token, f1, labelServer) }

// Verify reports whether f answers f1 by somebody who knows the token.
func (f *Frame2) Verify(token *Token, f1 *Frame1) bool {
	p := f.proof(token, f1, labelServer)
	return p.Equal(&f.Proof)
}

func (f *Frame2) proof(token *Token, f1 *Frame1, label byte) Proof {
	return prove(token, append(f1.labelled(label), f.Nonce[:]...))
}

// Append writes f.
func (f *Frame2) Append(dst []byte) []byte {
	return append(append(dst, f.Nonce[:]...), f.Proof[:]...)
}

// ParseFrame2 reads a frame 2.
func ParseFrame2(b []byte) (Frame2, error) {
	if len(b) != Frame2Size {
		return Frame2{}, malformed("frame 2", "%d bytes", len(b))
	}
	c := cursor{rest: b}
	var f Frame2
	c.copy(f.Nonce[:])
	c.copy(f.Proof[:])
	return f, nil
}
