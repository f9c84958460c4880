package wire

import (
	"crypto/rand"
	"encoding/binary"
)

// Random64 returns a number that no other process can guess, for ids.
func Random64() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// NewNonce returns a nonce that was never used.
func NewNonce() (n Nonce) {
	rand.Read(n[:])
	return n
}
