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

// prove proves the token for a message, which begins with a label.
func prove(token *Token, message []byte) (p Proof) {
	m := hmac.New(sha256.New, token[:])
	m.Write(message)
	m.Sum(p[:0])
	return p
}

// longestProven is more than any message that is proven.
const longestProven = 128

// Equal compares in constant time.
func (p *Proof) Equal(q *Proof) bool { return hmac.Equal(p[:], q[:]) }
