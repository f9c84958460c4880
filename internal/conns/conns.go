// Package conns makes connections of two processes that have met, for tests of what is said on them.
package conns

import (
	"net/netip"
	"testing"
	"time"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/rdma"
	"weft/transport/rendezvous"
	"weft/transport/tcp"
	"weft/transport/wire"
)

// Pair is one, at the side that has opened it and at the other.
func Pair(t testing.TB) (near, far *rendezvous.Conn) {
	t.Helper()
	knobs := knob.Defaults()
	lo := []*tcp.Device{{Device: rdma.Device{Name: "lo", IfIndex: 1, Addrs: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}}}}
	n := rendezvous.NewNetwork(knobs, report.Discard{}, lo)
	sockets := rendezvous.NewSockets(n, rendezvous.NewNoise(report.Discard{}))
	defer sockets.CloseAll()
	token, met := wire.Token{1}, make(chan *rendezvous.Conn, 1)
	l := &rendezvous.Listen{ID: 1, Device: lo[0].Name, Interfaces: lo, Token: token, Fresh: func(wire.Nonce) bool { return true },
		Proven: func(c *rendezvous.Conn, f1 wire.Frame1) {
			c.Leaves()
			f2 := wire.Frame2{Nonce: wire.NewNonce()}
			f2.Sign(&token, &f1)
			if _, err := c.Write(f2.Append(nil)); err != nil {
				t.Error(err)
			}
			met <- c
		}}
	addrs, err := sockets.Open(l, wire.HandleMax)
	if err != nil {
		t.Fatal(err)
	}
	h := wire.Handle{ListenID: l.ID, Token: token, Addrs: addrs}
	w, err := n.Race(t.Context(), &h, rendezvous.Paths(lo, &h), rendezvous.Opening{Role: wire.RoleComm, Options: tcp.DataOptions(knobs, -1)})
	if err != nil {
		t.Fatal(err)
	}
	near, far = w.Conn, <-met
	for _, c := range []*rendezvous.Conn{near, far} {
		c.SetDeadline(time.Time{})
		t.Cleanup(func() { c.Close() })
	}
	return near, far
}
