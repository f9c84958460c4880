package transport

import (
	"crypto/rand"
	"encoding/binary"

	"weft/transport/wire"
)

func random64() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

func newNonce() (n wire.Nonce) {
	rand.Read(n[:])
	return n
}
