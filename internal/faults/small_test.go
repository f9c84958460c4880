package faults

import "testing"

// TestFastSmallSends ends a stream of small sends, one under way at a time, in each way. Such sends are done before they
// leave; every one arrives, whatever the host does then, or does not.
func TestFastSmallSends(t *testing.T) {
	for _, c := range []struct {
		what string
		then func(t *testing.T, c *conn)
	}{
		{"no further call", func(*testing.T, *conn) {}},
		{"exit", func(t *testing.T, c *conn) { must(t, c.tx.h.Exit("exit", 0), "end of the sender's process") }},
		{"return", func(t *testing.T, c *conn) { must(t, c.tx.h.Exit("return", 0), "end of the sender's process") }},
		{"closeSend and _exit", func(t *testing.T, c *conn) {
			must(t, c.tx.n.CloseSend(c.send), "closeSend")
			must(t, c.tx.h.Exit("_exit", 0), "end of the sender's process")
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			x := join(start(t, "sender", newest), start(t, "receiver", newest), 8<<10)
			f := traffic{size: 8, count: 20_000, window: 1}
			r, s := x.receiving(f), x.sending(f)
			_, err := s.Wait()
			must(t, err, "sender")
			c.then(t, x)
			arrived(t, r)
		})
	}
}
