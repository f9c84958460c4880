package memory

import (
	"testing"

	"weft/transport/wire"
)

// card is a port without anything behind it.
type card struct{ Port }

// The ninth port of a device is refused, and the connection goes another way.
func TestSlotsAreBounded(t *testing.T) {
	own := new(card)
	p := NewPorts(own)
	for range 2 * wire.MaxSlots {
		if n, err := p.Enter(own); err != nil || n != 0 {
			t.Fatal(n, err)
		}
	}
	for want := 1; want < wire.MaxSlots; want++ {
		if n, err := p.Enter(new(card)); err != nil || n != want {
			t.Fatal(n, err)
		}
	}
	if _, err := p.Enter(new(card)); err == nil {
		t.Error("a ninth port has a slot")
	}
}
