package faults

import (
	"fmt"
	"strings"
	"testing"

	"weft/internal/simverbs"
)

// TestAddressChanges gives a port another address, moves it to another place of the table and brings the first one
// back, on either side: a connection that runs goes on, each next one is made with the address that the port has then,
// also where queue pairs of the last one are kept, and nothing of an earlier one is left.
func TestAddressChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		side  string
		stays bool // another connection, whose process keeps queue pairs for the next ones then
	}{{"simA", false}, {"simB", false}, {"simA", true}, {"simB", true}} {
		side := c.side
		t.Run(fmt.Sprintf("%s_another_stays_%v", side, c.stays), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, simverbs.Device{}, simverbs.Device{})
			a, b := w.start("simA", newest, "WEFT_TIMEOUT=4"), w.start("simB", newest, "WEFT_TIMEOUT=4")
			var running *conn
			if c.stays {
				running = join(a, b, 1<<20)
			}
			own := map[string]string{"simA": "10.9.1.1", "simB": "10.9.1.2"}[side]
			for _, step := range []struct {
				what    string
				lines   []string
				address string
			}{
				{"as it was", nil, own},
				{"another address", []string{"gid %s 1 10.9.1.77/24"}, "10.9.1.77"},
				{"another place of the table", []string{"gid %s 3 10.9.1.77/24", "gid %s 1 none"}, "10.9.1.77"},
				{"back", []string{"gid %s 1 " + own + "/24", "gid %s 3 none"}, own},
			} {
				for _, l := range step.lines {
					w.command(a, fmt.Sprintf(l, side+"/"+side))
				}
				if c.stays {
					running.move(traffic{size: 100_000, count: 10, window: 4})
				}
				settle(t, step.what+": the next comm is by RDMA, with "+step.address, func() (string, bool) {
					mark := marked(a)
					n := join(a, b, 1<<20)
					n.move(traffic{size: 100_000, count: 10, window: 4})
					must(t, a.n.CloseSend(n.send), "closeSend")
					must(t, b.n.CloseRecv(n.recv), "closeRecv")
					text := strings.Join(said(a, mark), "\n")
					return text, byRDMA(a, mark) == 1 && (strings.Contains(text, "GIDs "+step.address+" and ") || strings.Contains(text, " and "+step.address+","))
				})
				for _, p := range []*peer{a, b} {
					if c.stays {
						break
					}
					w.atRest(p, simverbs.Objects{}, step.what)
				}
			}
		})
	}
}
