package wire

import (
	"crypto/hmac"
	"crypto/sha256"
)

// Proof is an HMAC-SHA256 under a listen's token.
type Proof [ProofSize]byte

// Labels keep a proof of one frame from being a proof of another.
const (
	labelServer = 2
	labelClient = 3
	labelAttach = 4
)

func prove(token *Token, parts ...[]byte) (p Proof) {
	m := hmac.New(sha256.New, token[:])
	for _, b := range parts {
		m.Write(b)
	}
	m.Sum(p[:0])
	return p
}

// Equal compares in constant time.
func (p *Proof) Equal(q *Proof) bool { return hmac.Equal(p[:], q[:]) }
