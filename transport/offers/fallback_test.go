package offers_test

import (
	"errors"
	"strings"
	"testing"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/device"
	"weft/transport/offers"
	"weft/transport/rdma"
	"weft/transport/route"
	"weft/transport/verbs/port"
	"weft/transport/wire"
)

// Whether a comm may go over TCP is the user's word, and of out-of-order receives only where there is RDMA.
func TestMayUseTCP(t *testing.T) {
	for _, c := range []struct {
		env    map[string]string
		rdma   bool
		remedy string
	}{
		{nil, true, ""},
		{map[string]string{"WEFT_REQUIRE": "rdma"}, true, "WEFT_REQUIRE"},
		{map[string]string{"WEFT_REQUIRE": "rdma"}, false, "WEFT_REQUIRE"},
		{map[string]string{"NCCL_IB_OOO_RQ": "1"}, true, "NCCL_IB_OOO_RQ"},
		{map[string]string{"NCCL_IB_OOO_RQ": "1"}, false, ""},
	} {
		dev := &device.Device{Device: rdma.Device{Name: "mlx5_0"}}
		if c.rdma {
			dev.Verbs = &port.Device{}
		}
		err := (&offers.Way{Knobs: knob.Parse(c.env)}).MayUseTCP(dev)
		if (err == nil) != (c.remedy == "") {
			t.Errorf("%v, RDMA %v: %v", c.env, c.rdma, err)
		}
		if e := (*report.Error)(nil); errors.As(err, &e) && (e.Cause != report.Usage || e.Dev != "mlx5_0" || e.Peer != "host1 (10.0.0.2)" ||
			!strings.Contains(e.Remedy, c.remedy) || !strings.Contains(e.Error(), "no cable")) {
			t.Errorf("%v: %v", c.env, e)
		}
	}
}

// Ports that were not asked for are told with their names, aloud where they are slower, and then once.
func TestOtherPortsAreTold(t *testing.T) {
	peers := []wire.Device{{Index: 3, Name: "fab0", SpeedMbps: 400000}, {Index: 4, Name: "stor0", SpeedMbps: 25000}, {Index: 5, Name: "fab1", SpeedMbps: 400000}}
	over := func(local, peer uint16, name string, speed, peerSpeed int) route.Pair {
		return route.Pair{Local: &port.Device{Device: rdma.Device{Name: name}}, LocalIndex: local, PeerIndex: peer, Speed: speed, PeerSpeed: peerSpeed}
	}
	for _, c := range []struct {
		name  string
		pairs []route.Pair
		asked []uint16
		tried []string
		want  []string // parts of the line, "" for none
		aloud bool
	}{
		{"as asked", []route.Pair{over(0, 3, "mlx5_0", 400000, 400000)}, []uint16{3}, nil, nil, false},
		{"slower here", []route.Pair{over(1, 4, "mlx5_1", 25000, 25000)}, []uint16{3}, nil,
			[]string{"mlx5_0 -> host1 runs over mlx5_1 to stor0 (25 Gb/s), not over mlx5_0 to fab0 (400 Gb/s), which were asked for: they share no subnet"}, true},
		{"as fast", []route.Pair{over(0, 5, "mlx5_0", 400000, 400000)}, []uint16{3}, []string{"the link is down", "no route"},
			[]string{"mlx5_0 to fab1 (400 Gb/s)", "which were asked for: the link is down; no route"}, false},
		{"two slow pairs count together", []route.Pair{over(0, 4, "mlx5_0", 400000, 25000), over(1, 4, "mlx5_1", 25000, 25000)}, []uint16{4, 3}, nil,
			[]string{"mlx5_0 to stor0, mlx5_1 to stor0 (50 Gb/s), not over mlx5_0 to stor0+fab0 (400 Gb/s)"}, true},
		{"more than the slow port that was asked for", []route.Pair{over(0, 3, "mlx5_0", 400000, 400000)}, []uint16{4}, nil,
			[]string{"(400 Gb/s), not over mlx5_0 to stor0 (25 Gb/s)"}, false},
		{"a device that the peer does not list", []route.Pair{over(0, 9, "mlx5_0", 400000, 1000)}, []uint16{3}, nil, []string{"mlx5_0 to device 9 (1 Gb/s)"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dev := &device.Device{Device: rdma.Device{Name: "mlx5_0", SpeedMbps: 400000}}
			log := &report.Recorder{}
			way := &offers.Way{}
			for range 2 {
				way.TellOtherPorts(dev, log, peers, c.pairs, c.asked, c.tried...)
			}
			warnings, lines := log.Count("WARN"), len(log.Lines())
			if c.aloud != (warnings == 1) || (lines == 0) != (c.want == nil) || lines != 0 && lines != 2 {
				t.Fatalf("%q", log.Lines())
			}
			for _, part := range c.want {
				if !strings.Contains(log.Lines()[0], part) {
					t.Errorf("%q has no %q", log.Lines()[0], part)
				}
			}
		})
	}
}

// A number of lanes that a connection cannot have is cut, and that is said once.
func TestLanesFor(t *testing.T) {
	for _, c := range []struct {
		qps         string
		pairs, want int
		cut         bool
	}{
		{"1", 1, 1, false}, {"4", 1, 4, false}, {"4", 3, 12, false}, {"32", 1, 32, false}, {"33", 1, 32, true}, {"5", 8, 32, true}, {"4", 8, 32, false}, {"11", 3, 30, true},
	} {
		log := &report.Recorder{}
		w := &offers.Way{Knobs: knob.Parse(map[string]string{"NCCL_IB_QPS_PER_CONNECTION": c.qps}), Log: log}
		for range 2 {
			if n := w.LanesFor(c.pairs); n != c.want {
				t.Errorf("%s per connection over %d pairs: %d lanes, want %d", c.qps, c.pairs, n, c.want)
			}
		}
		if n := log.Count("WARN", "NCCL_IB_QPS_PER_CONNECTION="+c.qps); n > 1 || (n == 1) != c.cut {
			t.Errorf("%s per connection over %d pairs: %q", c.qps, c.pairs, log.Lines())
		}
	}
}

// Two sides of which one has out-of-order receives have no connection at all.
func TestSidesAgreeOnOrder(t *testing.T) {
	pairs := []route.Pair{{Local: &port.Device{Device: rdma.Device{Name: "mlx5_0"}}}}
	w := &offers.Way{Knobs: knob.Parse(nil)}
	if _, err := w.AgreeOnOrder(pairs, false); err != nil {
		t.Error(err)
	}
	final, err := w.AgreeOnOrder(pairs, true)
	if !final || !strings.Contains(err.Error(), "0 on the listening side and 1 on the connecting one") {
		t.Errorf("final %v: %v", final, err)
	}
	if final, err := offers.Hears(err.Error(), true); !final || report.CauseOf(errors.Unwrap(err)) != report.Usage {
		t.Errorf("the connecting side hears, final %v: %v", final, err)
	}
	if final, err := offers.Hears("the link is down", false); final || !strings.Contains(err.Error(), "the peer refuses: the link is down") {
		t.Errorf("the connecting side hears, final %v: %v", final, err)
	}
}

// An error names the other side unless it names one.
func TestWithPeer(t *testing.T) {
	for was, want := range map[string]string{"": "host1", "host2": "host2"} {
		e := report.Errorf(report.Peer, "connect", "lost").With(was)
		if err := offers.WithPeer(e, "host1"); !errors.Is(err, e) || e.Peer != want {
			t.Errorf("%q becomes %q: %v", was, e.Peer, err)
		}
	}
}
