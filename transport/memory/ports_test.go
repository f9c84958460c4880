package memory

import (
	"testing"

	"weft/transport/verbs/port"
	"weft/transport/wire"
)

// The ninth port of a device is refused, and the connection goes another way.
func TestSlotsAreBounded(t *testing.T) {
	own := new(port.Device)
	p := NewPorts(own)
	for range 2 * wire.MaxSlots {
		if n, err := p.Enter(own); err != nil || n != 0 {
			t.Fatal(n, err)
		}
	}
	for want := 1; want < wire.MaxSlots; want++ {
		if n, err := p.Enter(new(port.Device)); err != nil || n != want {
			t.Fatal(n, err)
		}
	}
	if _, err := p.Enter(new(port.Device)); err == nil {
		t.Error("a ninth port has a slot")
	}
}
