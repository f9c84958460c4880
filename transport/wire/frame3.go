package wire

// Frame3Size is the length of the connecting side's confirmation.
const Frame3Size = ProofSize

// Frame3 confirms the attempt that won: HMAC(token, label, frame 1's signed
// part, server nonce) 32.
type Frame3 struct {
	Proof Proof
}

// Sign sets the proof over both nonces.
func (f *Frame3) Sign(token *Token, f1 *Frame1, f2 *Frame2) {
	f.Proof = f2.proof(token, f1, labelClient)
}

// Verify reports whether the sender of f1 read f2.
func (f *Frame3) Verify(token *Token, f1 *Frame1, f2 *Frame2) bool {
	p := f2.proof(token, f1, labelClient)
	return p.Equal(&f.Proof)
}

// Append writes f.
func (f *Frame3) Append(dst []byte) []byte { return append(dst, f.Proof[:]...) }

// ParseFrame3 reads a frame 3.
func ParseFrame3(b []byte) (Frame3, error) {
	if len(b) != Frame3Size {
		return Frame3{}, malformed("frame 3", "%d bytes", len(b))
	}
	return Frame3{Proof: Proof(b)}, nil
}
