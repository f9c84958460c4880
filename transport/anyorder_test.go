package transport

import (
	"strings"
	"testing"

	"weft/internal/report"
	"weft/transport/lanes"
	"weft/transport/wire"
)

// Out-of-order receives are had on both sides, or there is no connection.
func TestSimOutOfOrder(t *testing.T) {
	on := map[string]string{"NCCL_IB_OOO_RQ": "1", "NCCL_IB_ADAPTIVE_ROUTING": "1"}
	for _, c := range []struct {
		name      string
		from, to  string
		mine      map[string]string
		theirs    map[string]string
		why       string // of the connecting side; "": it connects
		theirsToo bool   // accept returns an error as well
	}{
		{"both", "=simX", "=simY", on, on, "", false},
		{"nobody asks", "=simX", "=simY", nil, nil, "", false},
		{"without adaptive routing", "=simX", "=simY", map[string]string{"NCCL_IB_OOO_RQ": "1"}, on, "need adaptive routing", false},
		{"only here", "=simX", "=simY", on, nil, "it is 0 on the listening side and 1 on the connecting one", true},
		{"only there", "=simX", "=simY", nil, on, "it is 1 on the listening side and 0 on the connecting one", true},
		{"this card cannot", "=simZ", "=simY", on, on, "none such", false},
		{"that card cannot", "=simX", "=simZ", on, on, "none such", true},
		{"no mlx5", "=simA", "=simB", on, on, "libmlx5 does not serve the card", false},
		{"no way but TCP, asked for here", "=simX", "=simI", on, nil, "would go over TCP: the peer has no RDMA device that shares a subnet", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := startSim(t, c.from, c.mine), startSim(t, c.to, c.theirs)
			if says := map[string]string{"=simX": "; out-of-order receives: at most 512 per QP", "=simZ": "; out-of-order receives: libmlx5 says", "=simA": "; out-of-order receives: libmlx5 does not"}[c.from]; (a.log.Count("INFO INIT device 0", says) == 1) != (c.mine != nil) {
				t.Errorf("%q", a.log.Lines())
			}
			l, h := b.listen(t, wire.HandleMax)
			defer l.Close()
			s, err := a.connect(h)
			if c.why != "" {
				if report.CauseOf(err) != report.Usage || !strings.Contains(err.Error(), c.why) || !strings.Contains(err.Error(), " on sim") || !remedied(err) {
					t.Errorf("connect: %v", err)
				}
				if c.theirsToo {
					if _, err := accept(l); report.CauseOf(err) != report.Usage || !strings.Contains(err.Error(), " on sim") || !remedied(err) {
						t.Errorf("accept: %v", err)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			r, err := accept(l)
			if err != nil {
				t.Fatal(err)
			}
			if !overVerbs(s) || a.log.Count("INFO", "with out-of-order receives") != len(c.mine)/2 {
				t.Errorf("%q", a.log.Lines())
			}
			before := posted(s)
			move(t, s, r, 100_000)
			if n := posted(s)[0] - before[0]; n != 1 {
				t.Errorf("%d requests", n)
			}
			s.Close()
			r.Close()
		})
	}
	noQPLeft(t, startSim(t, "=simX", nil), startSim(t, "=simY", nil))
}

// remedied reports whether an error names the other side and says what to do.
func remedied(err error) bool {
	return strings.Contains(err.Error(), " with ") && strings.Contains(err.Error(), "NCCL_IB_OOO_RQ") && strings.Contains(err.Error(), "; ")
}

// A listen that was to have out-of-order receives takes no connection over TCP.
func TestSimOutOfOrderIsNotTCP(t *testing.T) {
	a, b := startSim(t, "=simI", nil), startSim(t, "=simX", map[string]string{"NCCL_IB_OOO_RQ": "1", "NCCL_IB_ADAPTIVE_ROUTING": "1"})
	l, h := b.listen(t, wire.HandleMax)
	defer l.Close()
	s, err := a.connect(h)
	if _, err := accept(l); report.CauseOf(err) != report.Usage || !strings.Contains(err.Error(), "on simX with ") || !strings.Contains(err.Error(), "would go over TCP") {
		t.Errorf("accept: %v", err)
	}
	if err != nil {
		return // it has heard already
	}
	defer s.Close()
	const size = 1 << 20 // too large to leave ahead of its receive
	if code := until(t, "the send ends", send(s, register(t, s, buffer(t, size), size))); code == 0 {
		t.Error("the send arrives")
	}
}

// A fused device has out-of-order receives if every member has that carries the
// comm, those that join later too.
func TestSimOutOfOrderOfEveryMember(t *testing.T) {
	on := map[string]string{"NCCL_IB_OOO_RQ": "1", "NCCL_IB_ADAPTIVE_ROUTING": "1"}
	for _, c := range []struct{ from, to, lacks string }{{"=simX", "=simY,simZ", "simZ"}, {"=simY,simZ", "=simX", "simZ"}, {"=simX", "=simY,simV", ""}} {
		a, b := startSim(t, c.from, on), startSim(t, c.to, on)
		for _, p := range []*process{a, b} {
			if len(p.Devices()) == 2 {
				p.fusedWith(t, 0, 1)
			}
		}
		l, h := b.listen(t, wire.HandleMax)
		s, err := a.connect(h)
		if c.lacks != "" {
			if report.CauseOf(err) != report.Usage || !strings.Contains(err.Error(), " on "+c.lacks) || !remedied(err) {
				t.Errorf("%+v: %v", c, err)
			}
			l.Close()
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		r, err := accept(l)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []*lanes.Carrier{s.Carrier().(*lanes.Carrier), r.Carrier().(*lanes.Carrier)} {
			if len(v.Pairs) != 2 || !v.Tuning.AnyOrder {
				t.Errorf("%d pairs, %+v", len(v.Pairs), v.Tuning)
			}
		}
		grown(t, s, r, 2)
		before := posted(s)
		move(t, s, r, 1<<20)
		for i, n := range posted(s) {
			if n-before[i] > 2 { // its share, and on the first lane the sizes
				t.Errorf("lane %d: %d requests", i, n-before[i])
			}
		}
		l.Close()
		s.Close()
		r.Close()
	}
}
