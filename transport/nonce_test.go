package transport

import (
	"testing"

	"weft/transport/wire"
)

func TestNoncesAreBounded(t *testing.T) {
	b := start(t, nil)
	l, _ := b.listen(t, 128)
	first := wire.NewNonce()
	if !l.fresh(first) || l.fresh(first) {
		t.Error("a nonce is not remembered")
	}
	last := first
	for range 3 * noncesKept {
		last = wire.NewNonce()
		l.fresh(last)
	}
	if l.fresh(last) || len(l.nonces[0])+len(l.nonces[1]) > 2*noncesKept {
		t.Errorf("%d and %d are remembered", len(l.nonces[0]), len(l.nonces[1]))
	}
}
