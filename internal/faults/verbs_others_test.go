package faults

import (
	"fmt"
	"strings"
	"testing"

	"weft/internal/host"
	"weft/internal/simverbs"
)

// TestOthersGoOn has one of several connections between the same two devices fail, each of which is in the middle of
// its traffic on threads of its own: that one ends on both sides, and the others lose nothing, neither then nor after.
func TestOthersGoOn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		side  string
		fault string // of the queue pair with this number
	}{
		{"simA", "error simA/simA 20 RETRY_EXC_ERR lost %d"},
		{"simA", "error simA/simA 20 LOC_PROT_ERR placed %d"},
		{"simB", "error simB/simB 1 WR_FLUSH_ERR lost %d"},
		{"simA", "event simA/simA QP_FATAL %d"},
		{"simB", "event simB/simB QP_FATAL %d"},
	} {
		t.Run(strings.NewReplacer(" ", "_", "/", "_", "%d", "of_one").Replace(c.fault), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, simverbs.Device{}, simverbs.Device{})
			a, b := w.start("simA", newest, "WEFT_TIMEOUT=4"), w.start("simB", newest, "WEFT_TIMEOUT=4")
			var conns []*conn
			for i := range 4 {
				n := join(a, b, 1<<20)
				n.name = fmt.Sprint("-", i)
				conns = append(conns, n)
			}
			number := firstQP(map[string]*peer{"simA": a, "simB": b}[c.side])
			f := traffic{size: 50_000, count: 300, window: 4, limit: 2 * sweepLimit}
			endless := f
			endless.count = 1 << 30 // for the one that fails
			loops := []*host.Pending{conns[0].receiving(endless), conns[0].sending(endless)}
			for _, n := range conns[1:] {
				loops = append(loops, n.receiving(f), n.sending(f))
			}
			w.command(map[string]*peer{"simA": a, "simB": b}[c.side], fmt.Sprintf(c.fault, number))
			for i, l := range loops {
				r, err := l.Wait()
				if n := r.Int("bad"); n != 0 {
					t.Errorf("connection %d: %d bytes are wrong", i/2, n)
				}
				if victim := i < 2; stuck(err) || (err != nil) != victim {
					t.Errorf("connection %d, %s: %v", i/2, []string{"receiver", "sender"}[i%2], err)
				}
			}
			for _, n := range conns[1:] {
				n.move(f)
			}
			for _, n := range conns {
				must(t, a.n.CloseSend(n.send), "closeSend")
				must(t, b.n.CloseRecv(n.recv), "closeRecv")
			}
			for _, p := range []*peer{a, b} {
				w.atRest(p, simverbs.Objects{}, c.fault)
			}
		})
	}
}
