package route

import (
	"math"
	"testing"

	"weft/internal/knob"
	"weft/transport/fastpath"
	"weft/transport/rdma"
	"weft/transport/verbs/port"
)

func TestTuningIsSaid(t *testing.T) {
	for want, c := range map[string]Tuning{
		"1 QP per message, no adaptive routing":                          {Width: 1},
		"2 QPs per message, adaptive routing above 8192 bytes":           {Width: 2, AdaptiveAbove: 8192},
		"2 QPs per message, adaptive routing above 1 byte":               {Width: 2, AdaptiveAbove: 1},
		"3 QPs per message, adaptive routing with out-of-order receives": {Width: 3, AnyOrder: true},
	} {
		if got := c.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The knobs decide; where they leave it open, NCCL's hints do.
func TestTuning(t *testing.T) {
	alone := rdma.CommAttr{MaxConcurrentPeers: 1, MaxFlowsPerPeer: 1}
	two, three := rdma.CommAttr{MaxConcurrentPeers: 1, MaxFlowsPerPeer: 2}, rdma.CommAttr{MaxConcurrentPeers: 3, MaxFlowsPerPeer: 1}
	unknown := rdma.Attr{Send: rdma.CommAttr{MaxConcurrentPeers: -1, MaxFlowsPerPeer: -1}, Proto: math.MaxUint32}
	for _, c := range []struct {
		name       string
		infiniband bool
		env        map[string]string
		hints      rdma.Attr
		kind       fastpath.Kind
		want       Tuning
	}{
		{"nothing known", false, nil, rdma.Attr{}, fastpath.Send, Tuning{64, 2, 65536, 0, false}},
		{"hints that say nothing", false, nil, unknown, fastpath.Send, Tuning{64, 2, 65536, 0, false}},
		{"one connection at a time takes all lanes", false, nil, rdma.Attr{Send: alone}, fastpath.Send, Tuning{64, 6, 65536, 0, false}},
		{"the other direction's hints", false, nil, rdma.Attr{Recv: alone}, fastpath.Send, Tuning{64, 2, 65536, 0, false}},
		{"two connections share the lanes", false, nil, rdma.Attr{Send: two}, fastpath.Send, Tuning{64, 3, 65536, 0, false}},
		{"three do", false, nil, rdma.Attr{Send: three}, fastpath.Send, Tuning{64, 2, 65536, 0, false}},
		{"a ring with one channel", false, nil, rdma.Attr{Recv: rdma.CommAttr{MaxFlowsPerPeer: 1}, Algo: rdma.AlgoRing}, fastpath.Recv, Tuning{64, 6, 65536, 0, false}},
		{"the knob, not the hints", false, map[string]string{"NCCL_IB_SPLIT_DATA_ON_QPS": "0"}, rdma.Attr{Send: alone}, fastpath.Send, Tuning{64, 2, 65536, 0, false}},
		{"split", false, map[string]string{"NCCL_IB_SPLIT_DATA_ON_QPS": "1", "WEFT_STRIPE_MIN": "5"}, rdma.Attr{}, fastpath.Send, Tuning{64, 6, 5, 0, false}},
		{"small messages only", false, nil, rdma.Attr{Proto: rdma.ProtoLL | rdma.ProtoLL128}, fastpath.Send, Tuning{256, 2, math.MaxUint32, 0, false}},
		{"small messages, and a knob", false, map[string]string{"WEFT_STRIPE_MIN": "5"}, rdma.Attr{Proto: rdma.ProtoLL}, fastpath.Send, Tuning{256, 2, 5, 0, false}},
		{"all protocols", false, nil, rdma.Attr{Proto: 7}, fastpath.Recv, Tuning{64, 2, 65536, 0, false}},
		{"adaptive routing", false, map[string]string{"NCCL_IB_ADAPTIVE_ROUTING": "1"}, rdma.Attr{}, fastpath.Send, Tuning{64, 2, 65536, 8192, false}},
		{"its threshold", false, map[string]string{"NCCL_IB_ADAPTIVE_ROUTING": "1", "NCCL_IB_AR_THRESHOLD": "0"}, rdma.Attr{}, fastpath.Send, Tuning{64, 2, 65536, 1, false}},
		{"NCCL's own threshold", false, map[string]string{"NCCL_IB_ADAPTIVE_ROUTING": "1", "NCCL_IB_AR_THRESHOLD": "-2"}, rdma.Attr{}, fastpath.Send, Tuning{64, 2, 65536, 8192, false}},
		{"InfiniBand routes adaptively", true, nil, rdma.Attr{}, fastpath.Send, Tuning{64, 2, 65536, 8192, false}},
		{"unless told not to", true, map[string]string{"NCCL_IB_ADAPTIVE_ROUTING": "0"}, rdma.Attr{}, fastpath.Send, Tuning{64, 2, 65536, 0, false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			local := &port.Device{InfiniBand: c.infiniband}
			if got := Tune(knob.Parse(c.env), c.hints, c.kind, []Pair{{Local: local}, {Local: local}}, 6); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}
