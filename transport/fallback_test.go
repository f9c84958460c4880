package transport

import (
	"errors"
	"strings"
	"testing"

	"weft/internal/report"
	"weft/transport/offers"
	"weft/transport/wire"
)

// tcpOnly plays a process without RDMA devices, and why.
func tcpOnly(t testing.TB, why string, env map[string]string) *process {
	t.Helper()
	p := start(t, env)
	p.ways[0].(*offers.Way).NoVerbs = why
	return p
}

// A fabric whose ports are each a subnet of their own, joined by routers, beside
// a slower network that all hosts share: the devices that were asked for carry
// the connection, since a route joins them.
func TestSimRoutedFabric(t *testing.T) {
	a, b := startSim(t, "=simR,simS", nil), startSim(t, "=simT,simU", nil)
	s, r := pair(t, a, b)
	if !overVerbs(s) || !overVerbs(r) {
		t.Fatalf("TCP: %q %q", a.log.Lines(), b.log.Lines())
	}
	move(t, s, r, 1<<20)
	for _, p := range []*process{a, b} {
		if p.log.Count("INFO NET", "over sim", "10.10.0.0", "10.10.0.2") != 1 || p.log.Count("WARN") != 0 {
			t.Errorf("%q", p.log.Lines())
		}
	}
}

// Without a route the slower network carries it, and that is a warning with both speeds.
func TestSimSlowerSubstitute(t *testing.T) {
	a, b := startSim(t, "=simW,simS", nil), startSim(t, "=simT,simU", nil)
	s, r := pair(t, a, b)
	if !overVerbs(s) || !overVerbs(r) {
		t.Fatalf("TCP: %q %q", a.log.Lines(), b.log.Lines())
	}
	move(t, s, r, 1<<20)
	if a.log.Count("WARN", "simS to simU (25 Gb/s)", "not over simW to simT (400 Gb/s), which were asked for", "connection timed out") != 1 {
		t.Errorf("%q", a.log.Lines())
	}
	pair(t, a, b)
	if a.log.Count("WARN") != 1 || a.log.Count("INFO NET", "which were asked for") != 1 {
		t.Errorf("a second one: %q", a.log.Lines())
	}
}

// Two ports of one subnet whose partition stands at different places of their
// tables meet by its key, and not by its place; ends in two partitions do not
// hear each other.
func TestSimPartitions(t *testing.T) {
	key := map[string]string{"NCCL_IB_PKEY_VALUE": "0x8111"}
	for _, c := range []struct {
		name     string
		a, b     map[string]string
		overRDMA bool
	}{
		{"by its key", key, key, true},
		{"by its place", map[string]string{"NCCL_IB_PKEY": "1"}, map[string]string{"NCCL_IB_PKEY": "1"}, false},
		{"on one side only", key, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := startSim(t, "=simC", c.a), startSim(t, "=simD", c.b)
			s, r := pair(t, a, b)
			if overVerbs(s) != c.overRDMA || overVerbs(r) != c.overRDMA {
				t.Fatalf("RDMA: %v, %v: %q %q", overVerbs(s), overVerbs(r), a.log.Lines(), b.log.Lines())
			}
			move(t, s, r, 1<<20)
			if warned := a.log.Count("WARN", "simC -> ", "goes over TCP") == 1; warned == c.overRDMA {
				t.Errorf("%q", a.log.Lines())
			}
		})
	}
}

// Each side of a connection that goes over TCP hears the other's reason.
func TestSimWhyTCP(t *testing.T) {
	const no = "NCCL_IB_DISABLE=1"
	for _, c := range []struct {
		name         string
		a, b         *process
		aSays, bSays []string // lines of the connecting side, of the listening side
	}{
		{"the connecting side has no RDMA", tcpOnly(t, no, nil), startSim(t, "=simB", nil), nil,
			[]string{"WARN", "simB <- ", "goes over TCP, not by RDMA: the connecting side says: " + no}},
		{"the listening side has none", startSim(t, "=simA", nil), tcpOnly(t, no, nil),
			[]string{"WARN", "simA -> ", "goes over TCP, not by RDMA: the peer has no RDMA port for it: " + no}, nil},
		{"no way between their ports", startSim(t, "=simA", nil), startSim(t, "=simE", nil),
			[]string{"WARN", "simA -> ", "goes over TCP, not by RDMA: simA to its device 0 (routed)", "connection timed out"},
			[]string{"WARN", "simE <- ", "goes over TCP, not by RDMA: the connecting side says: simA to its device 0 (routed)", "connection timed out"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, r := pair(t, c.a, c.b)
			if overVerbs(s) || overVerbs(r) {
				t.Fatal("RDMA")
			}
			for _, side := range []struct {
				p    *process
				want []string
			}{{c.a, c.aSays}, {c.b, c.bSays}} {
				if len(side.want) > 0 && side.p.log.Count(side.want[0], side.want[1:]...) != 1 {
					t.Errorf("no line with %q: %q", side.want, side.p.log.Lines())
				}
				if len(side.want) == 0 && side.p.log.Count("WARN") != 0 {
					t.Errorf("%q", side.p.log.Lines())
				}
			}
		})
	}
}

// WEFT_REQUIRE=rdma makes an error of each way to TCP, on the side that has it and with both reasons.
func TestSimRequireRDMA(t *testing.T) {
	must := map[string]string{"WEFT_REQUIRE": "rdma"}
	const no = "NCCL_IB_DISABLE=1"
	t.Run("no RDMA at all", func(t *testing.T) {
		p := tcpOnly(t, no, must)
		if _, err := p.ctx.Listen(0, make([]byte, wire.HandleMax)); !required(err, "listen", no) {
			t.Errorf("listen: %v", err)
		}
		_, h := startSim(t, "=simB", nil).listen(t, wire.HandleMax)
		if _, err := p.connect(h); !required(err, "connect", no) {
			t.Errorf("connect: %v", err)
		}
	})
	t.Run("the connecting side insists", func(t *testing.T) {
		a, b := startSim(t, "=simA", must), startSim(t, "=simE", nil)
		_, h := b.listen(t, wire.HandleMax)
		if _, err := a.connect(h); !required(err, "connect", "connection timed out") {
			t.Errorf("connect: %v", err)
		}
	})
	t.Run("the listening side insists", func(t *testing.T) {
		a, b := tcpOnly(t, no, nil), startSim(t, "=simB", must)
		l, h := b.listen(t, wire.HandleMax)
		_, _ = a.connect(h) // done or refused, as the two run
		if _, err := accept(l); !required(err, "accept", no) {
			t.Errorf("accept: %v", err)
		}
	})
}

func required(err error, op, why string) bool {
	var e *report.Error
	return errors.As(err, &e) && e.Op == op && e.Cause == report.Usage && strings.Contains(err.Error(), "WEFT_REQUIRE=rdma") && strings.Contains(err.Error(), why)
}

// seeRequired is for the knob's effect.
func seeRequired(t *testing.T, env map[string]string) string {
	if _, err := tcpOnly(t, "no card", env).ctx.Listen(0, make([]byte, wire.HandleMax)); err != nil {
		return "an error"
	}
	return "TCP"
}
