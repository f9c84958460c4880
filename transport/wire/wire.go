// Package wire is what weft writes to a peer but for data and clear-to-send: the
// connection handle, the three frames that prove its token, and the framed
// messages that follow the proof.
// It parses and appends bytes and touches no socket.
//
// Every parser takes bytes that anybody may have sent: it checks each count and
// length against its bound before it allocates, in pieces no larger than
// MaxFrame, and returns the zero value with every error. Byte order is little endian throughout.
package wire

import (
	"errors"
	"fmt"
)

const (
	// Version of everything in this package; the handle, frame 1 and each
	// message carry it.
	Version = 1
	// MaxFrame bounds one framed message, header included.
	MaxFrame = 4096
	// NonceSize is the length of a nonce, a process id and a token.
	NonceSize = 16
	// ProofSize is the length of an HMAC-SHA256.
	ProofSize = 32
)

// Nonce is drawn by one side for one handshake attempt and never reused.
type Nonce [NonceSize]byte

// Token is the secret of one listen; it travels in the handle only.
type Token [NonceSize]byte

// ProcessID names one process for its lifetime; a forked child draws its own.
type ProcessID [NonceSize]byte

// ErrMalformed is the cause of every parse error in this package.
var ErrMalformed = errors.New("malformed")

// ErrVersion says that the bytes are weft's, of a version that this build does not speak.
var ErrVersion = errors.New("wire version not spoken here")

func malformed(what, format string, args ...any) error {
	return fmt.Errorf("%s: %s: %w", what, fmt.Sprintf(format, args...), ErrMalformed)
}
