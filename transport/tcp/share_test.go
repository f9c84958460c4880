package tcp_test

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/hostcalls"
	"weft/transport/tcp"
)

// Connections on which large messages leave in turn write a part of their message each: what waits for the peers to
// read it has a limit, however many they are. One alone writes as much as the kernel takes.
func TestConnectionsShare(t *testing.T) {
	const header, size = 32, 300_000
	for _, c := range []struct{ connections, most int }{{1, size}, {2, size}, {6, 1 << 20 / 5}, {8, 128 << 10}, {32, 128 << 10}} {
		t.Run(fmt.Sprint(c.connections), func(t *testing.T) {
			var txs, rxs []*side
			var peers []int
			for range c.connections {
				fds := socketpairs(t, 1)
				if err := unix.SetsockoptInt(fds[0][0], unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<20); err != nil {
					t.Fatal(err)
				}
				tx, rx := connectedBy(t, fds, 140, tcp.Stash)
				txs, rxs, peers = append(txs, tx), append(rxs, rx), append(peers, fds[1][0])
			}
			for round := range 4 {
				var sends, receives []uintptr
				if round == 1 { // some write more often than others
					for i := c.connections / 2; i < c.connections; i++ {
						r, _ := hostcalls.Irecv(rxs[i].handle, rxs[i].buf(0, size, 0))
						s := isend(t, txs[i], txs[i].buf(0, size, 0))
						if _, rc := hostcalls.Finish(t, s, r); rc != 0 {
							t.Fatalf("connection %d ends with %d", i, rc)
						}
					}
				}
				for _, rx := range rxs {
					r, _ := hostcalls.Irecv(rx.handle, rx.buf(0, size, 0))
					receives = append(receives, r)
				}
				for i, tx := range txs {
					sends = append(sends, isend(t, tx, tx.buf(0, size, 0)))
					wrote, err := unix.IoctlGetInt(peers[i], unix.SIOCINQ)
					if err != nil {
						t.Fatal(err)
					}
					if round > 0 && wrote > c.most+header { // in the first they do not know of one another
						t.Errorf("round %d: connection %d of %d wrote %d bytes", round, i, c.connections, wrote)
					}
					if wrote < 128<<10 {
						t.Errorf("round %d: connection %d of %d wrote %d bytes only", round, i, c.connections, wrote)
					}
				}
				if _, rc := hostcalls.Finish(t, append(sends, receives...)...); rc != 0 {
					t.Fatalf("round %d ends with %d", round, rc)
				}
			}
		})
	}
}
