package wire

import (
	"crypto/sha256"
	"crypto/subtle"
)

// Proof is an HMAC-SHA256 under a listen's token.
type Proof [ProofSize]byte

// Labels keep a proof of one frame from being a proof of another.
const (
	labelServer = 2
	labelClient = 3
	labelAttach = 4
)

// prove proves the token for a message, which begins with a label. It is HMAC (RFC 2104) as crypto/hmac computes it,
// written out because that makes six objects of each proof, and a connect has eight.
func prove(token *Token, message []byte) Proof {
	var inner [sha256.BlockSize + longestProven]byte
	var outer [sha256.BlockSize + sha256.Size]byte
	copy(inner[:], token[:])
	copy(outer[:], token[:])
	for i := range sha256.BlockSize {
		inner[i] ^= 0x36
		outer[i] ^= 0x5c
	}
	sum := sha256.Sum256(append(inner[:sha256.BlockSize], message...))
	copy(outer[sha256.BlockSize:], sum[:])
	return sha256.Sum256(outer[:])
}

// longestProven is more than any message that is proven.
const longestProven = 128

// Equal compares in constant time.
func (p *Proof) Equal(q *Proof) bool { return subtle.ConstantTimeCompare(p[:], q[:]) == 1 }
