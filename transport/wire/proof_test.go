package wire

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"testing"
)

func TestProofIsHMAC(t *testing.T) {
	token := Token([]byte("sixteen bytes ok"))
	for n := range 3 * longestProven {
		message := bytes.Repeat([]byte{byte(n), 0x5c}, n)[:n]
		h := hmac.New(sha256.New, token[:])
		h.Write(message)
		if p := prove(&token, message); !bytes.Equal(p[:], h.Sum(nil)) {
			t.Fatalf("a message of %d bytes: % x, crypto/hmac says % x", n, p, h.Sum(nil))
		}
	}
}
