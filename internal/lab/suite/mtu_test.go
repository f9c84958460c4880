package suite

import (
	"fmt"
	"strings"
	"testing"

	"weft/internal/lab"
)

// Two machines with MTU 9000, and a port of another MTU on each cable between them, as of a switch that nobody has told.
//
//	node0 eth0 9000 ---- port ---- 9000 eth0 node1
//	node0 eth1 9000 ---- port ---- 9000 eth1 node1
func TestMixedMTU(t *testing.T) {
	const hosts, ethernet, tunnel = 9000, 1500, 1400 // RDMA has packets of 4096 with the first, of 1024 with the others
	l := boot(t, lab.Config{Nodes: 2, Cables: 2, MTU: hosts, Between: hosts})
	narrow := func(c lab.Cable, mtu int) {
		t.Helper()
		if err := l.Narrow(c, mtu); err != nil {
			t.Fatal(err)
		}
	}
	c, other := l.Cables[0], l.Cables[1]
	// moves runs both ranks, which must have the data right, by RDMA, and warn once of each that is lost.
	moves := func(t *testing.T, tcp lab.Cable, lost ...lostMTU) {
		t.Helper()
		noLeak(t, l.Nodes...)
		for i, end := range pairBy(t, l, c, tcp, []string{patient}, "--sizes", "8,64K,1M", "--iters", "2") {
			o := <-end
			right(t, i, o)
			overRDMA(t, o, 2, c.Ends[i].RDMA)
			warnings := lostPackets(o)
			if len(warnings) != len(lost) {
				t.Errorf("rank %d warns %d times of lost packets, want %d\n%s", i, len(warnings), len(lost), o.text())
				continue
			}
			for k, l := range lost {
				if want := l.between(c.Ends[i], c.Ends[1-i]); !strings.Contains(warnings[k], want) {
					t.Errorf("rank %d: %q\nlacks %q", i, warnings[k], want)
				}
			}
		}
	}
	t.Run("a port that takes all", func(t *testing.T) { moves(t, other) })
	for _, mtu := range []int{ethernet, tunnel} {
		t.Run(fmt.Sprintf("a port of %d for RDMA alone", mtu), func(t *testing.T) {
			narrow(c, mtu)
			defer narrow(c, hosts)
			moves(t, other, lostMTU{rdma: true, wide: 4096, passes: 1024})
		})
	}
	t.Run("a port of 1500 for everything", func(t *testing.T) {
		narrow(c, ethernet)
		defer narrow(c, hosts)
		moves(t, c, lostMTU{wide: hosts, passes: ethernet}, lostMTU{rdma: true, wide: 4096, passes: 1024})
	})
	for _, tcp := range []lab.Cable{other, c} {
		way := "another"
		if tcp.Number == c.Number {
			way = "the same"
		}
		t.Run("a port that shrinks under way, with TCP on "+way+" cable", func(t *testing.T) {
			noLeak(t, l.Nodes...)
			ends := underWay(t, l, c, tcp, "1000000", patient)
			narrow(c, tunnel)
			defer narrow(c, hosts)
			for i, end := range ends {
				o := <-end
				if o.err != nil || o.status != 1 {
					t.Errorf("rank %d: status %d, %v, want 1\n%s", i, o.status, o.err, o.text())
				}
				if cause := causeOf(o); !strings.Contains(cause, "MTU") {
					t.Errorf("rank %d does not name the MTU but %q\n%s", i, cause, o.text())
				}
			}
		})
	}
	t.Run("a port that takes all again", func(t *testing.T) { moves(t, other) })
}

// lostMTU is what a way loses, and what passes.
type lostMTU struct {
	rdma         bool
	wide, passes int
}

func (l lostMTU) between(near, far lab.End) string {
	kind, at := "packets", near.Addr
	if l.rdma {
		kind, at = "RDMA packets", near.RDMA+" ("+near.Addr+")"
	}
	return fmt.Sprintf(": %s of MTU %d are lost between %s and %s, those of %d pass and are used", kind, l.wide, at, far.Addr, l.passes)
}

// lostPackets are the warnings that packets are lost.
func lostPackets(o *outcome) (lines []string) {
	for line := range strings.Lines(o.out.String()) {
		if strings.Contains(line, " WARN ") && strings.Contains(line, " are lost ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}
