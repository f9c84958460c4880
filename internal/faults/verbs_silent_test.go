package faults

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weft/internal/host"
	"weft/internal/simverbs"
)

// TestSilentOverRDMA cuts a path while the control connection stands and the NIC's
// own retries are at their default of half a minute: both sides end, the
// cause is in one line on each, nothing is left, and once the path is mended the
// same processes use it again.
func TestSilentOverRDMA(t *testing.T) {
	t.Parallel()
	for _, cut := range []struct{ name, cut, mend string }{
		{"what_is_sent", "blackhole simA/simA tx", "blackhole simA/simA off"},
		{"what_is_answered", "blackhole simB/simB tx", "blackhole simB/simB off"},
		{"link_of_the_receiver", "link simB/simB down", "link simB/simB up"},
	} {
		for _, busy := range []bool{true, false} {
			name := cut.name + "_while_a_receive_waits"
			if busy {
				name = cut.name + "_while_bytes_travel"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, simverbs.Device{Rate: slow}, simverbs.Device{Rate: slow})
				a, b := w.begin("sender", "WEFT_TIMEOUT=2"), w.begin("survivor", "WEFT_TIMEOUT=2")
				c := join(a, b, 16<<20)
				c.move(traffic{size: 100_000, count: 3, window: 2})
				var errA, errB error
				if busy {
					f := traffic{size: 4 << 20, count: 200, window: 4, limit: deathLimit} // 2 s
					r, s := c.receiving(f), c.sending(f)
					time.Sleep(700 * time.Millisecond) // the probe is there
					w.command(a, cut.cut)
					_, errA = s.Wait()
					_, errB = r.Wait()
				} else {
					time.Sleep(700 * time.Millisecond)
					w.command(a, cut.cut)
					errB = receive(c)
					errA = sendUntil(c)
				}
				for _, end := range []struct {
					name string
					*peer
					err error
				}{{"sender", a, errA}, {"receiver", b, errB}} {
					if end.err == nil || stuck(end.err) || host.Code(end.err) != host.RemoteError {
						t.Errorf("%s: %v", end.name, end.err)
					}
					told := 0
					for _, l := range said(end.peer, 0) {
						why := strings.Contains(l, "does not answer") || strings.Contains(l, "gave the connection up") || strings.Contains(l, "ended LOC_QP_OP_ERR")
						if why && !strings.Contains(l, "probe on") {
							told++
						}
					}
					if told != 1 {
						t.Errorf("%s: %d lines say why: %q", end.name, told, said(end.peer, 0))
					}
				}
				must(t, a.n.CloseSend(c.send), "close")
				must(t, b.n.CloseRecv(c.recv), "close")
				w.atRest(a, simverbs.Objects{}, "the sender")
				w.atRest(b, simverbs.Objects{}, "the receiver")
				w.command(a, cut.mend)
				settle(t, "once the port's event is heard, the next comm is by RDMA", func() (string, bool) {
					mark := marked(a)
					join(a, b, 16384).move(traffic{size: 4096, count: 3, window: 2})
					return fmt.Sprintf("%q", said(a, mark)), byRDMA(a, mark) == 1
				})
			})
		}
	}
}
