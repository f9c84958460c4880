package transport

import (
	"strings"
	"testing"
)

// Ports of MTU 4096, and something between them that takes less: the connection is
// made for what passes, and says so once.
func TestPortsWithANarrowPathBetween(t *testing.T) {
	for _, c := range []struct{ name, limit, mtu string }{
		{"a port of 1500 between", "limit simB 1400", "1024"},
		{"towards the listener", "limit simB 2100 rx", "2048"},
		{"from the connecting port", "limit simA 300 tx", "256"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := startSim(t, "=simA", nil), startSim(t, "=simB", nil)
			command(t, c.limit)
			defer command(t, "limit simA 0", "limit simB 0")
			s, r := pair(t, a, b)
			s2, r2 := pair(t, a, b)
			if !overVerbs(s) || !overVerbs(r2) {
				t.Fatalf("TCP: %q %q", a.log.Lines(), b.log.Lines())
			}
			move(t, s, r, 100_000)
			move(t, s2, r2, 100_000)
			if a.log.Count("WARN", "RDMA packets of MTU 4096 are lost between simA (10.9.1.1) and 10.9.1.2, those of "+c.mtu+" pass") != 1 {
				t.Errorf("%q", a.log.Lines())
			}
			for _, p := range []*process{a, b} {
				if p.log.Count("INFO", "GIDs", "MTU "+c.mtu+")") != 2 {
					t.Errorf("%q", p.log.Lines())
				}
			}
			noneLeft(t, s, r, s2, r2)
		})
	}
}

// Nothing but acknowledgements passes: that is no path.
func TestPortsWithoutAPath(t *testing.T) {
	a, b := startSim(t, "=simA", nil), startSim(t, "=simB", nil)
	command(t, "limit simB 100")
	defer command(t, "limit simB 0")
	s, r := pair(t, a, b)
	if overVerbs(s) || overVerbs(r) {
		t.Fatal("over RDMA")
	}
	if a.log.Count("WARN", "over TCP", "acknowledgement of a") != 1 {
		t.Errorf("%q", a.log.Lines())
	}
	noneLeft(t, s, r)
}

// The path begins to lose large packets while a connection stands: 0 bytes, and
// small messages, still pass. Both sides end, and the next connection is smaller.
func TestPathOfPortsNarrows(t *testing.T) {
	a, b, s, r := probedPair(t, nil)
	move(t, s, r, 100_000)
	command(t, "limit simB 1400 rx")
	defer command(t, "limit simB 0")
	move(t, s, r, 1000)
	in, out := awaiting(t, r, 100_000), send(s, register(t, s, buffer(t, 100_000), 100_000))
	drive(t, "both ends", out, in)
	if out.code == 0 || in.code == 0 {
		t.Errorf("codes %d and %d", out.code, in.code)
	}
	lines := strings.Join(a.log.Lines(), "\n") + strings.Join(b.log.Lines(), "\n")
	if !strings.Contains(lines, "packets of MTU 4096 are lost, those of 1024 pass") {
		t.Errorf("%q %q", a.log.Lines(), b.log.Lines())
	}
	s2, r2 := pair(t, a, b)
	move(t, s2, r2, 100_000)
	if !overVerbs(s2) {
		t.Errorf("TCP: %q", a.log.Lines())
	}
	noneLeft(t, s, r, s2, r2)
}
