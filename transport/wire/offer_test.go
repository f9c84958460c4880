package wire

import (
	"slices"
	"testing"
)

// An offer that names a connection says that it does, and what of.
func TestReuseOnTheWire(t *testing.T) {
	end := QPEnd{QPN: 17, MTU: 5}
	for _, h := range []Header{{Flags: FlagReuse}, {Flags: FlagReuse, Session: 1}, {Flags: FlagReuse, Comm: 1}, {Session: 1}, {Comm: 1}} {
		m := Offer{Header: h, Keys: []uint32{1}, Lanes: []QPEnd{end}}
		if _, err := ParseOffer(m.Append(nil)); err == nil {
			t.Errorf("%+v", h)
		}
	}
	m := Offer{Header: Header{Flags: FlagReuse, Session: 1, Comm: 2}, Keys: []uint32{1}, Lanes: slices.Repeat([]QPEnd{end}, 4)}
	if _, err := ParseOffer(m.Append(nil)); err != nil {
		t.Error(err)
	}
}
