package transport

import (
	"strings"
	"testing"

	"weft/transport/wire"
)

// What a busy host answers too late costs that try, and not the connect while it has time for another.
func TestLateAnswer(t *testing.T) {
	for _, c := range []struct {
		name  string
		env   map[string]string
		slow  string // microseconds that a queue pair takes to make
		tries int    // at least; 0: until one succeeds
	}{
		{"tried again", map[string]string{"WEFT_TIMEOUT": "2"}, "2500000", 0},
		{"no time left", map[string]string{"WEFT_TIMEOUT": "1", "WEFT_CONNECT_TIMEOUT": "8"}, "1500000", 2},
		{"no further try", map[string]string{"WEFT_TIMEOUT": "1", "NCCL_SOCKET_RETRY_CNT": "0"}, "1500000", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := startSim(t, "=simA", c.env), startSim(t, "=simB", map[string]string{"WEFT_TIMEOUT": "10"})
			l, h := b.listen(t, wire.HandleMax)
			defer l.Close()
			command(t, "slow create_qp "+c.slow)
			defer command(t, "slow create_qp 0")
			tries := map[wire.Nonce]bool{}
			var s *Comm
			var err error
			eventually(t, "the connect ends, or tries again", func() bool {
				s, err = a.ctx.Connect(0, -1, h)
				b.inbound.Lock()
				for n := range b.inbound.byNonce {
					tries[n] = true
				}
				b.inbound.Unlock()
				return s != nil || err != nil || c.tries == 0 && len(tries) > 1
			})
			command(t, "slow create_qp 0")
			if c.tries > 0 {
				if err == nil || !strings.Contains(err.Error(), "the handshake failed: waiting for the answer to an offer: read") || len(tries) < c.tries || c.tries == 1 && len(tries) > 1 {
					t.Fatalf("%d tries: %v: %q", len(tries), err, b.log.Lines())
				}
				return
			}
			if s != nil || err != nil {
				t.Fatalf("%v, %v after %d tries", s, err, len(tries))
			}
			if s, err = a.connect(h); err != nil {
				t.Fatal(err)
			}
			r, err := accept(l)
			if err != nil {
				t.Fatal(err)
			}
			move(t, s, r, 100_000)
			noneLeft(t, s, r)
		})
	}
}
